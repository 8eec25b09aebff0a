// Integers of a few bits that throw where a GPU's `int` or `unsigned` would overflow, wrap or lose a part of a value.
// `WIDTH_BITS` says how many; `width_at` is called with the line of each statement.

constexpr int64_t MOST_OF_WIDTH = (int64_t(1) << (WIDTH_BITS - 1)) - 1;  // in the place of INT32_MAX
static int current_line = 0;
static inline void width_at(int line) { current_line = line; }

[[noreturn]] static void trap(const char* type, double value)
{
    throw std::overflow_error("line " + std::to_string(current_line) + " of the CUDA text: " + type + " of " +
                              std::to_string(WIDTH_BITS) + " bits cannot hold " + std::to_string(value));
}

// The arithmetic of elements and literals alone is C's, whose range does not shrink with the bits.
[[noreturn]] static void leave_unjudged(double value)
{
    throw std::overflow_error("line " + std::to_string(current_line) + " of the CUDA text: elements alone reach " +
                              std::to_string(value));
}

template <bool is_signed>
struct Checked {
    int64_t value;

    static constexpr int64_t low = is_signed ? -MOST_OF_WIDTH - 1 : 0, high = is_signed ? MOST_OF_WIDTH : 2 * MOST_OF_WIDTH + 1;

    template <typename Number>
    static constexpr int64_t held(Number number)
    {
        if (!(number >= static_cast<Number>(low) || (low < 0 && std::is_unsigned_v<Number>)) ||
            number > static_cast<Number>(high))
            if (!std::is_same_v<Number, bool>) trap(is_signed ? "int" : "unsigned", static_cast<double>(number));
        return static_cast<int64_t>(number);
    }

    Checked() = default;
    template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number>>>
    constexpr Checked(Number number) : value(held(wide(number))) {}
    template <bool other, typename = std::enable_if_t<other != is_signed>>
    constexpr Checked(Checked<other> number) : value(held(number.value)) {}
    constexpr operator int64_t() const { return value; }

    // Elements narrower than `held` compares in become wide ones.
    template <typename Number>
    static constexpr auto wide(Number number)
    {
        if constexpr (std::is_floating_point_v<Number>)
            return number;
        else if constexpr (std::is_same_v<Number, uint64_t>)
            return static_cast<int64_t>(number);  // of a sum that wrapped
        else
            return static_cast<int64_t>(number);
    }

    constexpr Checked operator+() const { return *this; }
    constexpr Checked operator-() const { return Checked(-value); }
    constexpr Checked operator~() const { return Checked(is_signed ? ~value : high - value); }
    constexpr Checked& operator++() { return *this = Checked(value + 1); }
    constexpr Checked& operator--() { return *this = Checked(value - 1); }
};

template <typename T>
constexpr bool is_checked = false;
template <bool is_signed>
constexpr bool is_checked<Checked<is_signed>> = true;
template <typename T>
constexpr bool is_number = is_checked<T> || std::is_arithmetic_v<T>;
template <typename A, typename B>
constexpr bool is_mixed = is_number<A>&& is_number<B> && (is_checked<A> || is_checked<B>);

// What C computes in: the usual arithmetic conversions. An element of 16 bits needs an `int` of 32.
template <typename A, typename B>
struct Meeting {
    using type = decltype(A() + B());
};
template <typename A, bool is_signed>
struct Meeting<A, Checked<is_signed>> {
    using Element = std::conditional_t<sizeof(A) == 2, int32_t, A>;
    using type = std::conditional_t<std::is_floating_point_v<A> || sizeof(A) == 8 || sizeof(A) == 2 ||
                                        std::is_same_v<A, uint32_t>,
                                    Element, Checked<is_signed>>;
};
template <bool is_signed, typename B>
struct Meeting<Checked<is_signed>, B> : Meeting<B, Checked<is_signed>> {};
template <bool a, bool b>
struct Meeting<Checked<a>, Checked<b>> {
    using type = Checked<a && b>;
};
template <typename A, typename B>
using Meet = typename Meeting<std::decay_t<A>, std::decay_t<B>>::type;

template <typename T>
constexpr auto plain(T number)
{
    if constexpr (is_checked<T>)
        return number.value;
    else
        return number;
}

// An operand as C converts it: an unsigned one has no sign.
template <typename C, typename T>
constexpr auto operand(T number)
{
    if constexpr (std::is_same_v<C, Checked<true>>) {
        const auto wide = static_cast<int64_t>(plain(number));
        if (!is_checked<T> && (wide < C::low || wide > C::high)) leave_unjudged(static_cast<double>(wide));
        return wide;
    } else if constexpr (is_checked<C>) {
        if (plain(number) < 0) trap("unsigned", static_cast<double>(plain(number)));
        return static_cast<int64_t>(plain(number));
    } else {
        return static_cast<C>(plain(number));
    }
}

#define WIDTH_ARITHMETIC(op)                                                                               \
    template <typename A, typename B, typename = std::enable_if_t<is_mixed<A, B>>>                         \
    constexpr Meet<A, B> operator op(A a, B b)                                                             \
    {                                                                                                      \
        using C = Meet<A, B>;                                                                              \
        return C(operand<C>(a) op operand<C>(b));                                                          \
    }                                                                                                      \
    template <bool is_signed, typename B, typename = std::enable_if_t<is_number<B>>>                       \
    constexpr Checked<is_signed>& operator op##=(Checked<is_signed>& a, B b)                               \
    {                                                                                                      \
        return a = a op b;                                                                                 \
    }
#define WIDTH_COMPARISON(op)                                                       \
    template <typename A, typename B, typename = std::enable_if_t<is_mixed<A, B>>> \
    constexpr bool operator op(A a, B b)                                           \
    {                                                                              \
        using C = Meet<A, B>;                                                      \
        return operand<C>(a) op operand<C>(b);                                     \
    }
#define WIDTH_SHIFT(op, value)                                                                                  \
    template <typename A, typename B, typename = std::enable_if_t<is_mixed<A, B>>>                              \
    constexpr auto operator op(A a, B b)                                                                        \
    {                                                                                                           \
        const int64_t by = static_cast<int64_t>(plain(b));                                                      \
        if constexpr (is_checked<A>)                                                                            \
            return A(value);                                                                                    \
        else                                                                                                    \
            return a op by;                                                                                     \
    }                                                                                                           \
    template <bool is_signed, typename B, typename = std::enable_if_t<is_number<B>>>                            \
    constexpr Checked<is_signed>& operator op##=(Checked<is_signed>& a, B b)                                    \
    {                                                                                                           \
        return a = a op b;                                                                                      \
    }

WIDTH_ARITHMETIC(+)
WIDTH_ARITHMETIC(-)
WIDTH_ARITHMETIC(*)
WIDTH_ARITHMETIC(/)
WIDTH_ARITHMETIC(%)
WIDTH_ARITHMETIC(&)
WIDTH_ARITHMETIC(|)
WIDTH_ARITHMETIC(^)
WIDTH_COMPARISON(==)
WIDTH_COMPARISON(!=)
WIDTH_COMPARISON(<)
WIDTH_COMPARISON(<=)
WIDTH_COMPARISON(>)
WIDTH_COMPARISON(>=)
WIDTH_SHIFT(<<, static_cast<int64_t>(plain(a) << by))
WIDTH_SHIFT(>>, static_cast<int64_t>(plain(a) >> by))

template <typename A, typename B, typename = std::enable_if_t<is_mixed<A, B> && !std::is_same_v<A, B>>>
constexpr Meet<A, B> min(A a, B b)
{
    return b < a ? Meet<A, B>(b) : Meet<A, B>(a);
}
template <typename A, typename B, typename = std::enable_if_t<is_mixed<A, B> && !std::is_same_v<A, B>>>
constexpr Meet<A, B> max(A a, B b)
{
    return a < b ? Meet<A, B>(b) : Meet<A, B>(a);
}
static inline Checked<true> abs(Checked<true> a) { return a.value < 0 ? -a : a; }

using Int = Checked<true>;
using Unsigned = Checked<false>;

// The unsigned type in which helpers compute what may wrap.
template <typename T, bool = is_checked<T>>
struct WrappingOf {
    using type = uint64_t;
};
template <typename T>
struct WrappingOf<T, false> {
    using type = std::make_unsigned_t<T>;
};
template <typename T>
using Wrapping = typename WrappingOf<T>::type;

// The result of `test ? a : b`, in the type in which C has them meet.
template <typename A, typename B, typename T>
constexpr decltype(auto) meet(T&& result)
{
    if constexpr (is_mixed<std::decay_t<A>, std::decay_t<B>>)
        return Meet<A, B>(result);
    else
        return std::decay_t<T>(result);
}
