// What kernels on the CPU use of <cmath>, which takes a compiler longer to read than most kernels: C's functions, and the
// overloads of them in std:: for floats and doubles. The compiler knows each of them by its name, so that the code is that
// of <cmath>.
#pragma once

#define INFINITY (__builtin_inff())
#define NAN (__builtin_nanf(""))

#define FUNCTION_OF_ONE(name) \
    extern "C" double name(double) noexcept; \
    extern "C" float name##f(float) noexcept; \
    namespace std { \
    using ::name; \
    inline float name(float x) { return __builtin_##name##f(x); } \
    }
#define FUNCTION_OF_TWO(name) \
    extern "C" double name(double, double) noexcept; \
    extern "C" float name##f(float, float) noexcept; \
    namespace std { \
    using ::name; \
    inline float name(float x, float y) { return __builtin_##name##f(x, y); } \
    }
#define TEST(name) \
    namespace std { \
    constexpr bool name(float x) { return __builtin_##name(x); } \
    constexpr bool name(double x) { return __builtin_##name(x); } \
    }

FUNCTION_OF_ONE(acos)
FUNCTION_OF_ONE(acosh)
FUNCTION_OF_ONE(asin)
FUNCTION_OF_ONE(asinh)
FUNCTION_OF_ONE(atan)
FUNCTION_OF_ONE(atanh)
FUNCTION_OF_ONE(cbrt)
FUNCTION_OF_ONE(ceil)
FUNCTION_OF_ONE(cos)
FUNCTION_OF_ONE(cosh)
FUNCTION_OF_ONE(erf)
FUNCTION_OF_ONE(erfc)
FUNCTION_OF_ONE(exp)
FUNCTION_OF_ONE(exp2)
FUNCTION_OF_ONE(expm1)
FUNCTION_OF_ONE(fabs)
FUNCTION_OF_ONE(floor)
FUNCTION_OF_ONE(lgamma)
FUNCTION_OF_ONE(log)
FUNCTION_OF_ONE(log10)
FUNCTION_OF_ONE(log1p)
FUNCTION_OF_ONE(log2)
FUNCTION_OF_ONE(logb)
FUNCTION_OF_ONE(nearbyint)
FUNCTION_OF_ONE(rint)
FUNCTION_OF_ONE(round)
FUNCTION_OF_ONE(sin)
FUNCTION_OF_ONE(sinh)
FUNCTION_OF_ONE(sqrt)
FUNCTION_OF_ONE(tan)
FUNCTION_OF_ONE(tanh)
FUNCTION_OF_ONE(tgamma)
FUNCTION_OF_ONE(trunc)
FUNCTION_OF_TWO(atan2)
FUNCTION_OF_TWO(copysign)
FUNCTION_OF_TWO(fdim)
FUNCTION_OF_TWO(fmax)
FUNCTION_OF_TWO(fmin)
FUNCTION_OF_TWO(fmod)
FUNCTION_OF_TWO(hypot)
FUNCTION_OF_TWO(nextafter)
FUNCTION_OF_TWO(pow)
FUNCTION_OF_TWO(remainder)
TEST(isfinite)
TEST(isinf)
TEST(isnan)
TEST(signbit)

extern "C" double fma(double, double, double) noexcept;
extern "C" float fmaf(float, float, float) noexcept;
extern "C" double frexp(double, int*) noexcept;
extern "C" float frexpf(float, int*) noexcept;
extern "C" double ldexp(double, int) noexcept;
extern "C" float ldexpf(float, int) noexcept;
extern "C" double j0(double) noexcept;
extern "C" double j1(double) noexcept;
extern "C" double jn(int, double) noexcept;
extern "C" double modf(double, double*) noexcept;
extern "C" float modff(float, float*) noexcept;
extern "C" double remquo(double, double, int*) noexcept;
extern "C" double y0(double) noexcept;
extern "C" double y1(double) noexcept;
extern "C" double yn(int, double) noexcept;
namespace std {
using ::fma;
inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
using ::ldexp;
inline float ldexp(float x, int exponent) { return __builtin_ldexpf(x, exponent); }
inline int abs(int x) { return __builtin_abs(x); }
inline long abs(long x) { return __builtin_labs(x); }
inline long long abs(long long x) { return __builtin_llabs(x); }
inline float abs(float x) { return __builtin_fabsf(x); }
inline double abs(double x) { return __builtin_fabs(x); }
}  // namespace std

#undef FUNCTION_OF_ONE
#undef FUNCTION_OF_TWO
#undef TEST
