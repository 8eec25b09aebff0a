// The threads of a block as fibers, which go on one after the other: each to the next barrier, or to its end.

constexpr size_t stack_bytes = 1 << 16;
struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[stack_bytes]};
    uint3 place;
    bool ended = false;
    std::exception_ptr error;
};
static ucontext_t block_context;
static Fiber* running = nullptr;
static std::function<void()> thread_body;

static void run_fiber()
{
    try {
        thread_body();
    } catch (...) {
        running->error = std::current_exception();
    }
    running->ended = true;
    swapcontext(&running->context, &block_context);
}

static inline void __syncthreads()
{
    const int line = current_line;
    swapcontext(&running->context, &block_context);
    current_line = line;
}

static void run_block(dim3 block, const std::function<void()>& body)
{
    thread_body = body;
    const size_t count = int64_t(block.x) * block.y * block.z;
    std::vector<Fiber> fibers(count);
    for (size_t number = 0; number < count; ++number) {
        Fiber& fiber = fibers[number];
        fiber.place = {Count(number % int64_t(block.x)), Count(number / int64_t(block.x) % int64_t(block.y)),
                       Count(number / (int64_t(block.x) * block.y))};
        getcontext(&fiber.context);
        fiber.context.uc_stack = {fiber.stack.get(), 0, stack_bytes};
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, run_fiber, 0);
    }
    for (bool waiting = true; waiting;) {
        waiting = false;
        for (size_t number = 0; number < count; ++number) {
            if (fibers[number].ended) continue;
            running = &fibers[number];
            threadIdx = running->place;
            swapcontext(&block_context, &running->context);
            if (running->error) std::rethrow_exception(running->error);
            waiting |= !running->ended;
        }
    }
}

template <typename T>
static T* dynamic_shared()
{
    alignas(16) static char memory[1 << 18];
    return reinterpret_cast<T*>(memory);
}
constexpr int cudaFuncAttributeMaxDynamicSharedMemorySize = 8;
template <typename Kernel>
static cudaError_t cudaFuncSetAttribute(Kernel*, int, Int)
{
    return cudaSuccess;
}

// Atomic operations of threads that run one after the other.
#define WIDTH_ATOMIC(name, result)                     \
    template <typename T, typename V>                  \
    static T name(T* place, V given)                   \
    {                                                  \
        const T value = static_cast<T>(given);         \
        const T old = *place;                          \
        *place = static_cast<T>(result);               \
        return old;                                    \
    }
WIDTH_ATOMIC(atomicAdd, old + value)
WIDTH_ATOMIC(atomicSub, old - value)
WIDTH_ATOMIC(atomicMin, value < old ? value : old)
WIDTH_ATOMIC(atomicMax, value > old ? value : old)
WIDTH_ATOMIC(atomicExch, value)
WIDTH_ATOMIC(atomicAnd, old & value)
WIDTH_ATOMIC(atomicOr, old | value)
WIDTH_ATOMIC(atomicXor, old ^ value)
WIDTH_ATOMIC(atomicInc, old >= value ? 0 : old + 1)
WIDTH_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
template <typename T, typename A, typename B>
static T atomicCAS(T* place, A compare, B value)
{
    const T old = *place;
    if (old == static_cast<T>(compare)) *place = static_cast<T>(value);
    return old;
}

template <typename... Values>
static int printf(const char*, Values...)
{
    return 0;
}
