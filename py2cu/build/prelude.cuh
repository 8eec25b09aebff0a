// What kernels use of <cstdint>, <cmath>, <cstring> and <type_traits>, for NVRTC, which has no standard library.
//
// Included behind the CUDA headers: `cuda/std` declares the same types, and some of the macros.
#pragma once

typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
typedef int64_t intptr_t;
typedef uint64_t uintptr_t;

#ifndef INT32_MAX
#define INT8_MIN (-128)
#define INT16_MIN (-32768)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#endif

// Constant expressions, unlike __int_as_float.
#ifndef INFINITY
#define INFINITY (__builtin_bit_cast(float, 0x7f800000))
#define NAN (__builtin_bit_cast(float, 0x7fc00000))
#endif

namespace std {

using ::memcpy;  // which NVRTC declares

template <typename T, T constant>
struct integral_constant {
    static constexpr T value = constant;
    using value_type = T;
    __device__ constexpr operator T() const { return constant; }
};
using true_type = integral_constant<bool, true>;
using false_type = integral_constant<bool, false>;

template <bool condition, typename T, typename F>
struct conditional {
    using type = T;
};
template <typename T, typename F>
struct conditional<false, T, F> {
    using type = F;
};
template <bool condition, typename T, typename F>
using conditional_t = typename conditional<condition, T, F>::type;

template <typename T, typename U>
inline constexpr bool is_same_v = false;
template <typename T>
inline constexpr bool is_same_v<T, T> = true;

template <typename T, typename... Others>
inline constexpr bool is_one_of_v = (is_same_v<T, Others> || ...);
template <typename T>
inline constexpr bool is_floating_point_v = is_one_of_v<T, float, double>;
template <typename T>
inline constexpr bool is_integral_v =
    is_one_of_v<T, bool, char, signed char, unsigned char, short, unsigned short, int, unsigned, long, unsigned long,
                long long, unsigned long long>;
template <typename T>
inline constexpr bool is_signed_v =
    is_one_of_v<T, char, signed char, short, int, long, long long, float, double>;

template <typename T>
struct make_unsigned {
    using type = T;  // of a type that is unsigned already
};
template <> struct make_unsigned<char> { using type = unsigned char; };
template <> struct make_unsigned<signed char> { using type = unsigned char; };
template <> struct make_unsigned<short> { using type = unsigned short; };
template <> struct make_unsigned<int> { using type = unsigned; };
template <> struct make_unsigned<long> { using type = unsigned long; };
template <> struct make_unsigned<long long> { using type = unsigned long long; };
template <typename T>
using make_unsigned_t = typename make_unsigned<T>::type;

}  // namespace std
