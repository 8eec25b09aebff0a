"""Names that the headers of C, C++ and CUDA declare in the global scope.

In: an identifier. Out: whether it is a macro, which cannot be a name in the emitted text, or declared, which cannot be
the name of a function or an array of file scope. `tests/test_header_names.py` compiles texts that use each name of the
headers as each kind of name.
"""

from __future__ import annotations

import re
from typing import Final

_FAMILIES: Final = re.compile(
    r"(?:cuda[A-Z_]|cudart|pthread_|CUDA_|PTHREAD_|NV_|CCCL_|LIBCUDACXX_|M_[A-Z0-9]|CLONE_)\w*(?<!_)"
)
_OF_A_TYPE: Final = re.compile(r"(?:f|l|f16|f32x?|f64x?|f128)$")  # variants of functions: `sinf`, `sinl`
_MACRO_WORDS: Final = """
    ADJ_ESTERROR ADJ_FREQUENCY ADJ_MAXERROR ADJ_MICRO ADJ_NANO ADJ_OFFSET ADJ_OFFSET_SINGLESHOT ADJ_OFFSET_SS_READ
    ADJ_SETOFFSET ADJ_STATUS ADJ_TAI ADJ_TICK ADJ_TIMECONST AIO_PRIO_DELTA_MAX ATOMIC_BOOL_LOCK_FREE
    ATOMIC_CHAR16_T_LOCK_FREE ATOMIC_CHAR32_T_LOCK_FREE ATOMIC_CHAR_LOCK_FREE ATOMIC_FLAG_INIT ATOMIC_INT_LOCK_FREE
    ATOMIC_LLONG_LOCK_FREE ATOMIC_LONG_LOCK_FREE ATOMIC_POINTER_LOCK_FREE ATOMIC_SHORT_LOCK_FREE ATOMIC_VAR_INIT
    ATOMIC_WCHAR_T_LOCK_FREE BC_BASE_MAX BC_DIM_MAX BC_SCALE_MAX BC_STRING_MAX BIG_ENDIAN BOOL_MAX BOOL_WIDTH BUFSIZ
    BYTE_ORDER CHARCLASS_NAME_MAX CHAR_BIT CHAR_MAX CHAR_MIN CHAR_WIDTH CLOCKS_PER_SEC CLOCK_BOOTTIME
    CLOCK_BOOTTIME_ALARM CLOCK_MONOTONIC CLOCK_MONOTONIC_COARSE CLOCK_MONOTONIC_RAW CLOCK_PROCESS_CPUTIME_ID
    CLOCK_REALTIME CLOCK_REALTIME_ALARM CLOCK_REALTIME_COARSE CLOCK_TAI CLOCK_THREAD_CPUTIME_ID COLL_WEIGHTS_MAX
    CPU_ALLOC CPU_ALLOC_SIZE CPU_AND CPU_AND_S CPU_CLR CPU_CLR_S CPU_COUNT CPU_COUNT_S CPU_EQUAL CPU_EQUAL_S CPU_FREE
    CPU_ISSET CPU_ISSET_S CPU_OR CPU_OR_S CPU_SET CPU_SETSIZE CPU_SET_S CPU_XOR CPU_XOR_S CPU_ZERO CPU_ZERO_S CSIGNAL
    CUDARTAPI CUDARTAPI_CDECL CUDART_CB CUDART_DEVICE CUDART_INF_BF16 CUDART_INF_FP16 CUDART_MAX_NORMAL_BF16
    CUDART_MAX_NORMAL_FP16 CUDART_MIN_DENORM_BF16 CUDART_MIN_DENORM_FP16 CUDART_NAN_BF16 CUDART_NAN_FP16
    CUDART_NEG_ZERO_BF16 CUDART_NEG_ZERO_FP16 CUDART_ONE_BF16 CUDART_ONE_FP16 CUDART_VERSION CUDART_ZERO_BF16
    CUDART_ZERO_FP16 CU_UUID_HAS_BEEN_DEFINED DBL_DECIMAL_DIG DBL_DIG DBL_EPSILON DBL_HAS_SUBNORM DBL_MANT_DIG DBL_MAX
    DBL_MAX_10_EXP DBL_MAX_EXP DBL_MIN DBL_MIN_10_EXP DBL_MIN_EXP DBL_TRUE_MIN DECIMAL_DIG DELAYTIMER_MAX E2BIG EACCES
    EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD EBADMSG EBADR EBADRQC EBADSLT EBFONT
    EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDEADLOCK EDESTADDRREQ EDOM
    EDOTDOT EDQUOT EEXIST EFAULT EFBIG EHOSTDOWN EHOSTUNREACH EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO
    EISCONN EISDIR EISNAM EKEYEXPIRED EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC ELIBBAD ELIBEXEC
    ELIBMAX ELIBSCN ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET
    ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM
    ENOMSG ENONET ENOPKG ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN ENOTDIR ENOTEMPTY ENOTNAM
    ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOF EOPNOTSUPP EOVERFLOW EOWNERDEAD EPERM EPFNOSUPPORT
    EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG EREMOTE EREMOTEIO ERESTART ERFKILL EROFS ESHUTDOWN
    ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH EUSERS
    EWOULDBLOCK EXDEV EXFULL EXIT_FAILURE EXIT_SUCCESS EXPR_NEST_MAX FD_CLR FD_ISSET FD_SET FD_SETSIZE FD_ZERO
    FILENAME_MAX FLT_DECIMAL_DIG FLT_DIG FLT_EPSILON FLT_EVAL_METHOD FLT_HAS_SUBNORM FLT_MANT_DIG FLT_MAX
    FLT_MAX_10_EXP FLT_MAX_EXP FLT_MIN FLT_MIN_10_EXP FLT_MIN_EXP FLT_RADIX FLT_ROUNDS FLT_TRUE_MIN FOPEN_MAX
    FP_ILOGB0 FP_ILOGBNAN FP_INFINITE FP_INT_DOWNWARD FP_INT_TONEAREST FP_INT_TONEARESTFROMZERO FP_INT_TOWARDZERO
    FP_INT_UPWARD FP_LLOGB0 FP_LLOGBNAN FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO HOST_NAME_MAX HUGE_VAL HUGE_VALF
    HUGE_VALL HUGE_VAL_F128 HUGE_VAL_F32 HUGE_VAL_F32X HUGE_VAL_F64 HUGE_VAL_F64X IF_DEVICE_OR_CUDACC INFINITY INT16_C
    INT16_MAX INT16_MIN INT16_WIDTH INT32_C INT32_MAX INT32_MIN INT32_WIDTH INT64_C INT64_MAX INT64_MIN INT64_WIDTH
    INT8_C INT8_MAX INT8_MIN INT8_WIDTH INTMAX_C INTMAX_MAX INTMAX_MIN INTMAX_WIDTH INTPTR_MAX INTPTR_MIN INTPTR_WIDTH
    INT_FAST16_MAX INT_FAST16_MIN INT_FAST16_WIDTH INT_FAST32_MAX INT_FAST32_MIN INT_FAST32_WIDTH INT_FAST64_MAX
    INT_FAST64_MIN INT_FAST64_WIDTH INT_FAST8_MAX INT_FAST8_MIN INT_FAST8_WIDTH INT_LEAST16_MAX INT_LEAST16_MIN
    INT_LEAST16_WIDTH INT_LEAST32_MAX INT_LEAST32_MIN INT_LEAST32_WIDTH INT_LEAST64_MAX INT_LEAST64_MIN
    INT_LEAST64_WIDTH INT_LEAST8_MAX INT_LEAST8_MIN INT_LEAST8_WIDTH INT_MAX INT_MIN INT_WIDTH IOV_MAX LC_ADDRESS
    LC_ADDRESS_MASK LC_ALL LC_ALL_MASK LC_COLLATE LC_COLLATE_MASK LC_CTYPE LC_CTYPE_MASK LC_GLOBAL_LOCALE
    LC_IDENTIFICATION LC_IDENTIFICATION_MASK LC_MEASUREMENT LC_MEASUREMENT_MASK LC_MESSAGES LC_MESSAGES_MASK
    LC_MONETARY LC_MONETARY_MASK LC_NAME LC_NAME_MASK LC_NUMERIC LC_NUMERIC_MASK LC_PAPER LC_PAPER_MASK LC_TELEPHONE
    LC_TELEPHONE_MASK LC_TIME LC_TIME_MASK LDBL_DECIMAL_DIG LDBL_DIG LDBL_EPSILON LDBL_HAS_SUBNORM LDBL_MANT_DIG
    LDBL_MAX LDBL_MAX_10_EXP LDBL_MAX_EXP LDBL_MIN LDBL_MIN_10_EXP LDBL_MIN_EXP LDBL_TRUE_MIN LINE_MAX LITTLE_ENDIAN
    LLONG_MAX LLONG_MIN LLONG_WIDTH LOGIN_NAME_MAX LONG_BIT LONG_LONG_MAX LONG_LONG_MIN LONG_MAX LONG_MIN LONG_WIDTH
    L_ctermid L_cuserid L_tmpnam MATH_ERREXCEPT MATH_ERRNO MAXFLOAT MAX_CANON MAX_INPUT MB_CUR_MAX MB_LEN_MAX MOD_CLKA
    MOD_CLKB MOD_ESTERROR MOD_FREQUENCY MOD_MAXERROR MOD_MICRO MOD_NANO MOD_OFFSET MOD_STATUS MOD_TAI MOD_TIMECONST
    MQ_PRIO_MAX NAME_MAX NAN NFDBITS NGREG NGROUPS_MAX NL_ARGMAX NL_LANGMAX NL_MSGMAX NL_NMAX NL_SETMAX NL_TEXTMAX
    NULL NZERO PATH_MAX PDP_ENDIAN PIPE_BUF PTRDIFF_MAX PTRDIFF_MIN PTRDIFF_WIDTH P_tmpdir RAND_MAX REG_CR2 REG_CSGSFS
    REG_EFL REG_ERR REG_OLDMASK REG_R10 REG_R11 REG_R12 REG_R13 REG_R14 REG_R15 REG_R8 REG_R9 REG_RAX REG_RBP REG_RBX
    REG_RCX REG_RDI REG_RDX REG_RIP REG_RSI REG_RSP REG_TRAPNO RENAME_EXCHANGE RENAME_NOREPLACE RENAME_WHITEOUT
    RE_DUP_MAX RTSIG_MAX SCHAR_MAX SCHAR_MIN SCHAR_WIDTH SCHED_BATCH SCHED_DEADLINE SCHED_FIFO SCHED_IDLE SCHED_ISO
    SCHED_OTHER SCHED_RESET_ON_FORK SCHED_RR SEEK_CUR SEEK_DATA SEEK_END SEEK_HOLE SEEK_SET SEM_VALUE_MAX SHRT_MAX
    SHRT_MIN SHRT_WIDTH SIG_ATOMIC_MAX SIG_ATOMIC_MIN SIG_ATOMIC_WIDTH SIZE_MAX SIZE_WIDTH SNAN SNANF SNANF128 SNANF32
    SNANF32X SNANF64 SNANF64X SNANL SSIZE_MAX STA_CLK STA_CLOCKERR STA_DEL STA_FLL STA_FREQHOLD STA_INS STA_MODE
    STA_NANO STA_PLL STA_PPSERROR STA_PPSFREQ STA_PPSJITTER STA_PPSSIGNAL STA_PPSTIME STA_PPSWANDER STA_RONLY
    STA_UNSYNC TIMER_ABSTIME TIME_UTC TMP_MAX TTY_NAME_MAX UCHAR_MAX UCHAR_WIDTH UINT16_C UINT16_MAX UINT16_WIDTH
    UINT32_C UINT32_MAX UINT32_WIDTH UINT64_C UINT64_MAX UINT64_WIDTH UINT8_C UINT8_MAX UINT8_WIDTH UINTMAX_C
    UINTMAX_MAX UINTMAX_WIDTH UINTPTR_MAX UINTPTR_WIDTH UINT_FAST16_MAX UINT_FAST16_WIDTH UINT_FAST32_MAX
    UINT_FAST32_WIDTH UINT_FAST64_MAX UINT_FAST64_WIDTH UINT_FAST8_MAX UINT_FAST8_WIDTH UINT_LEAST16_MAX
    UINT_LEAST16_WIDTH UINT_LEAST32_MAX UINT_LEAST32_WIDTH UINT_LEAST64_MAX UINT_LEAST64_WIDTH UINT_LEAST8_MAX
    UINT_LEAST8_WIDTH UINT_MAX UINT_WIDTH ULLONG_MAX ULLONG_WIDTH ULONG_LONG_MAX ULONG_MAX ULONG_WIDTH USHRT_MAX
    USHRT_WIDTH WCHAR_MAX WCHAR_MIN WCHAR_WIDTH WCONTINUED WEOF WEXITED WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED
    WIFSTOPPED WINT_MAX WINT_MIN WINT_WIDTH WNOHANG WNOWAIT WORD_BIT WSTOPPED WSTOPSIG WTERMSIG WUNTRACED
    XATTR_LIST_MAX XATTR_NAME_MAX XATTR_SIZE_MAX _tolower _toupper alloca assert_perror be16toh be32toh be64toh errno
    htobe16 htobe32 htobe64 htole16 htole32 htole64 isalnum_l isalpha_l isascii isascii_l isblank_l iscntrl_l
    isdigit_l isgraph_l islower_l isprint_l ispunct_l isspace_l issubnormal isupper_l isxdigit_l le16toh le32toh
    le64toh math_errhandling offsetof sched_priority stderr stdin stdout strdupa strndupa toascii toascii_l
"""
_DECLARED_WORDS: Final = """
    CUDAlogLevel_enum CUevent_st CUexternalMemory_st CUexternalSemaphore_st CUfunc_st CUgraphDeviceUpdatableNode_st
    CUgraphExec_st CUgraphNode_st CUgraph_st CUkern_st CUlib_st CUlogsCallbackEntry_st CUmemPoolHandle_st CUstream_st
    CUuserObject_st CUuuid CUuuid_st DP_INF_BITS ExpTypes FILE FP4_DP_HALF_ULP FP4_EXP_BIAS FP4_MANTISSA_MASK
    FP4_MAXNORM FP4_MINDENORM_O2 FP4_MINNORM FP4_OVERFLOW_THRESHOLD FP4_SIGNIFICAND_BITS FP6_DP_HALF_ULP FP6_EXP_BIAS
    FP6_MANTISSA_MASK FP6_MAXNORM FP6_MINDENORM_O2 FP6_MINNORM FP6_OVERFLOW_THRESHOLD FP6_SIGNIFICAND_BITS
    MAJOR_VERSION MINOR_VERSION UnaryFunction _libc_fpstate _libc_fpxreg _libc_xmmreg _pthread_cleanup_buffer a64l
    abort abs absx acos acosh aligned_alloc all any arc4random arc4random_buf arc4random_uniform asctime asctime_r
    asin asinh asprintf at_quick_exit atan atan2 atanh atexit atof atoi atol atomicAdd atomicAdd_block
    atomicAdd_system atomicAnd atomicAnd_block atomicAnd_system atomicCAS atomicCAS_block atomicCAS_system atomicDec
    atomicDec_block atomicDec_system atomicExch atomicExch_block atomicExch_system atomicInc atomicInc_block
    atomicInc_system atomicMax atomicMax_block atomicMax_system atomicMin atomicMin_block atomicMin_system atomicOr
    atomicOr_block atomicOr_system atomicSub atomicSub_block atomicSub_system atomicXor atomicXor_block
    atomicXor_system ballot basename bcmp bcopy blkcnt64_t blkcnt_t blksize_t blockDim blockIdx bsearch btowc bzero
    caddr_t calloc canonicalize canonicalize_file_name cbrt ceil char char1 char2 char3 char4 clearenv clearerr
    clearerr_unlocked clock clock64 clock_adjtime clock_getcpuclockid clock_getres clock_gettime clock_nanosleep
    clock_settime clock_t clockid_t clone comparison_fn_t cookie_close_function_t cookie_io_functions_t
    cookie_read_function_t cookie_seek_function_t cookie_write_function_t cooperative_groups copysign cos cosh cospi
    cpu_set_t ctermid ctime ctime_r cuda cuserid cyl_bessel_i0 cyl_bessel_i1 dadd daddr_t daylight ddivl decltype
    delete dev_t dfmal difftime dim3 div div_t dmul double1 double2 double2int double2ll double2uint double2ull
    double3 double4 double4_16a double4_32a double_t dprintf drand48 drand48_data drand48_r drem dsqrtl dsub duplocale
    dysize ecvt ecvt_r erand48 erand48_r erf erfc erfcinv erfcx erfinv error_t exit exp exp10 exp2 explicit_bzero
    expm1 f32addf128 f32addf32x f32addf64 f32addf64x f32divf128 f32divf32x f32divf64 f32divf64x f32fmaf128 f32fmaf32x
    f32fmaf64 f32fmaf64x f32mulf128 f32mulf32x f32mulf64 f32mulf64x f32sqrtf128 f32sqrtf32x f32sqrtf64 f32sqrtf64x
    f32subf128 f32subf32x f32subf64 f32subf64x f32xaddf128 f32xaddf64 f32xaddf64x f32xdivf128 f32xdivf64 f32xdivf64x
    f32xfmaf128 f32xfmaf64 f32xfmaf64x f32xmulf128 f32xmulf64 f32xmulf64x f32xsqrtf128 f32xsqrtf64 f32xsqrtf64x
    f32xsubf128 f32xsubf64 f32xsubf64x f64addf128 f64addf64x f64divf128 f64divf64x f64fmaf128 f64fmaf64x f64mulf128
    f64mulf64x f64sqrtf128 f64sqrtf64x f64subf128 f64subf64x f64xaddf128 f64xdivf128 f64xfmaf128 f64xmulf128
    f64xsqrtf128 f64xsubf128 fabs fadd fclose fcloseall fcvt fcvt_r fd_mask fd_set fdim fdiv fdivide fdopen feof
    feof_unlocked ferror ferror_unlocked fflush fflush_unlocked ffma ffs ffsll fgetc fgetc_unlocked fgetpos fgetpos64
    fgets fgets_unlocked fgetwc fgetwc_unlocked fgetws fgetws_unlocked fileno fileno_unlocked finite float float1
    float2 float2double float3 float4 float_t flockfile floor fma fmax fmaximum fmaximum_mag fmaximum_mag_num
    fmaximum_num fmaxmag fmemopen fmin fminimum fminimum_mag fminimum_mag_num fminimum_num fminmag fmod fmul fopen
    fopen64 fopencookie fpclassify fpos64_t fpos_t fpregset_t fprintf fputc fputc_unlocked fputs fputs_unlocked fputwc
    fputwc_unlocked fputws fputws_unlocked fread fread_unlocked free freelocale freopen freopen64 frexp fromfp fromfpx
    fsblkcnt64_t fsblkcnt_t fscanf fseek fseeko fseeko64 fsetpos fsetpos64 fsfilcnt64_t fsfilcnt_t fsid_t fsqrt fsub
    ftell ftello ftello64 ftrylockfile funlockfile fwide fwprintf fwrite fwrite_unlocked fwscanf fx_with_sticky gamma
    gcvt getc getc_unlocked getchar getchar_unlocked getcontext getcpu getdate getdate_err getdate_r getdelim getenv
    getline getloadavg getpayload getpt getsubopt getw getwc getwc_unlocked getwchar getwchar_unlocked gid_t gmtime
    gmtime_r grantpt greg_t gregset_t gridDim h2ceil h2cos h2exp h2exp10 h2exp2 h2floor h2log h2log10 h2log2 h2rcp
    h2rint h2rsqrt h2sin h2sqrt h2tanh h2tanh_approx h2trunc half half2 hceil hcos hexp hexp10 hexp2 hfloor hlog
    hlog10 hlog2 hrcp hrint hrsqrt hsin hsqrt htanh htanh_approx htrunc hypot id_t ilogb index initstate initstate_r
    ino64_t ino_t int int1 int16_t int2 int2double int3 int32_t int4 int64_t int8_t int_fast16_t int_fast32_t
    int_fast64_t int_fast8_t int_least16_t int_least32_t int_least64_t int_least8_t intmax_t intptr_t isalnum isalpha
    isblank iscanonical iscntrl isctype isdigit iseqsig isfinite isgraph isgreater isgreaterequal isinf isless
    islessequal islessgreater islower isnan isnormal isprint ispunct issignaling isspace isunordered isupper iswalnum
    iswalnum_l iswalpha iswalpha_l iswblank iswblank_l iswcntrl iswcntrl_l iswctype iswctype_l iswdigit iswdigit_l
    iswgraph iswgraph_l iswlower iswlower_l iswprint iswprint_l iswpunct iswpunct_l iswspace iswspace_l iswupper
    iswupper_l iswxdigit iswxdigit_l isxdigit iszero itimerspec j0 j1 jn jrand48 jrand48_r key_t l64a labs lcong48
    lcong48_r lconv ldexp ldiv ldiv_t lgamma lgamma_r lgammaf128_r lgammaf32_r lgammaf32x_r lgammaf64_r lgammaf64x_r
    lgammaf_r lgammal_r libraryPropertyType libraryPropertyType_t ll2double llabs lldiv lldiv_t llmax llmin llogb
    llrint llround locale_t localeconv localtime localtime_r loff_t log log10 log1p log2 logb long long1 long2 long3
    long4 long4_16a long4_32a longlong1 longlong2 longlong3 longlong4 longlong4_16a longlong4_32a lrand48 lrand48_r
    lrint lround make_bfloat162 make_char1 make_char2 make_char3 make_char4 make_cudaExtent make_cudaPitchedPtr
    make_cudaPos make_double1 make_double2 make_double3 make_double4 make_double4_16a make_double4_32a make_float1
    make_float2 make_float3 make_float4 make_half2 make_int1 make_int2 make_int3 make_int4 make_long1 make_long2
    make_long3 make_long4 make_long4_16a make_long4_32a make_longlong1 make_longlong2 make_longlong3 make_longlong4
    make_longlong4_16a make_longlong4_32a make_short1 make_short2 make_short3 make_short4 make_uchar1 make_uchar2
    make_uchar3 make_uchar4 make_uint1 make_uint2 make_uint3 make_uint4 make_ulong1 make_ulong2 make_ulong3
    make_ulong4 make_ulong4_16a make_ulong4_32a make_ulonglong1 make_ulonglong2 make_ulonglong3 make_ulonglong4
    make_ulonglong4_16a make_ulonglong4_32a make_ushort1 make_ushort2 make_ushort3 make_ushort4 makecontext malloc max
    max_align_t mblen mbrlen mbrtowc mbsinit mbsnrtowcs mbsrtowcs mbstate_t mbstowcs mbtowc mcontext_t memccpy memchr
    memcmp memcpy memfrob memmem memmove mempcpy memrchr memset min mkdtemp mkostemp mkostemp64 mkostemps mkostemps64
    mkstemp mkstemp64 mkstemps mkstemps64 mktemp mktime mode_t modf mrand48 mrand48_r nan nanosleep nearbyint new
    newlocale nextafter nextdown nexttoward nextup nlink_t noexcept norm norm3d norm4d normcdf normcdfinv nrand48
    nrand48_r nullptr_t nv nv_bfloat16 nv_bfloat162 nv_half nv_half2 obstack obstack_printf obstack_vprintf off64_t
    off_t omp_aligned_alloc omp_aligned_calloc omp_alloc omp_allocator_handle_t omp_alloctrait_key_t omp_alloctrait_t
    omp_alloctrait_value_t omp_atk_access omp_atk_alignment omp_atk_fallback omp_atk_fb_data omp_atk_partition
    omp_atk_pinned omp_atk_pool_size omp_atk_sync_hint omp_atv_abort_fb omp_atv_all omp_atv_allocator_fb
    omp_atv_blocked omp_atv_cgroup omp_atv_contended omp_atv_default omp_atv_default_mem_fb omp_atv_environment
    omp_atv_false omp_atv_interleaved omp_atv_nearest omp_atv_null_fb omp_atv_private omp_atv_pteam omp_atv_sequential
    omp_atv_serialized omp_atv_thread omp_atv_true omp_atv_uncontended omp_calloc omp_capture_affinity
    omp_cgroup_mem_alloc omp_const_mem_alloc omp_const_mem_space omp_default_mem_alloc omp_default_mem_space
    omp_depend_t omp_destroy_allocator omp_destroy_lock omp_destroy_nest_lock omp_display_affinity omp_display_env
    omp_event_handle_t omp_free omp_fulfill_event omp_get_active_level omp_get_affinity_format
    omp_get_ancestor_thread_num omp_get_cancellation omp_get_default_allocator omp_get_default_device
    omp_get_device_num omp_get_dynamic omp_get_initial_device omp_get_level omp_get_max_active_levels
    omp_get_max_task_priority omp_get_max_teams omp_get_max_threads omp_get_nested omp_get_num_devices
    omp_get_num_places omp_get_num_procs omp_get_num_teams omp_get_num_threads omp_get_partition_num_places
    omp_get_partition_place_nums omp_get_place_num omp_get_place_num_procs omp_get_place_proc_ids omp_get_proc_bind
    omp_get_schedule omp_get_supported_active_levels omp_get_team_num omp_get_team_size omp_get_teams_thread_limit
    omp_get_thread_limit omp_get_thread_num omp_get_wtick omp_get_wtime omp_high_bw_mem_alloc omp_high_bw_mem_space
    omp_in_final omp_in_parallel omp_init_allocator omp_init_lock omp_init_lock_with_hint omp_init_nest_lock
    omp_init_nest_lock_with_hint omp_is_initial_device omp_large_cap_mem_alloc omp_large_cap_mem_space
    omp_lock_hint_contended omp_lock_hint_none omp_lock_hint_nonspeculative omp_lock_hint_speculative omp_lock_hint_t
    omp_lock_hint_uncontended omp_lock_t omp_low_lat_mem_alloc omp_low_lat_mem_space omp_memspace_handle_t
    omp_nest_lock_t omp_null_allocator omp_pause_hard omp_pause_resource omp_pause_resource_all omp_pause_resource_t
    omp_pause_soft omp_proc_bind_close omp_proc_bind_false omp_proc_bind_master omp_proc_bind_primary
    omp_proc_bind_spread omp_proc_bind_t omp_proc_bind_true omp_pteam_mem_alloc omp_realloc omp_sched_auto
    omp_sched_dynamic omp_sched_guided omp_sched_monotonic omp_sched_static omp_sched_t omp_set_affinity_format
    omp_set_default_allocator omp_set_default_device omp_set_dynamic omp_set_lock omp_set_max_active_levels
    omp_set_nest_lock omp_set_nested omp_set_num_teams omp_set_num_threads omp_set_schedule omp_set_teams_thread_limit
    omp_sync_hint_contended omp_sync_hint_none omp_sync_hint_nonspeculative omp_sync_hint_speculative omp_sync_hint_t
    omp_sync_hint_uncontended omp_target_alloc omp_target_associate_ptr omp_target_disassociate_ptr omp_target_free
    omp_target_is_present omp_target_memcpy omp_target_memcpy_rect omp_test_lock omp_test_nest_lock
    omp_thread_mem_alloc omp_uintptr_t omp_unset_lock omp_unset_nest_lock on_exit open_memstream open_wmemstream
    operator pclose perror pid_t popen posix_memalign posix_openpt pow printf program_invocation_name
    program_invocation_short_name pselect ptrdiff_t ptsname ptsname_r putc putc_unlocked putchar putchar_unlocked
    putenv puts putw putwc putwc_unlocked putwchar putwchar_unlocked qecvt qecvt_r qfcvt qfcvt_r qgcvt qsort qsort_r
    quad_t quick_exit rand rand_r random random_data random_r raw rawmemchr rcbrt realloc reallocarray realpath
    remainder remove remquo rename renameat renameat2 res resultInfo rewind rhypot rindex rint rnorm rnorm3d rnorm4d
    round roundeven rpmatch rsqrt scalb scalbln scalbn scanf sched_get_priority_max sched_get_priority_min
    sched_getaffinity sched_getcpu sched_getparam sched_getscheduler sched_param sched_rr_get_interval
    sched_setaffinity sched_setparam sched_setscheduler sched_yield secure_getenv seed48 seed48_r select setbuf
    setbuffer setcontext setenv setlinebuf setlocale setns setpayload setpayloadsig setstate setstate_r setvbuf short
    short1 short2 short3 short4 sigabbrev_np sigdescr_np sigevent sign signbit signgam significand sigset_t sin sincos
    sincospi sinh sinpi size_t sizeof snprintf sprintf sqrt srand srand48 srand48_r srandom srandom_r sscanf ssize_t
    stack_t status std storage stpcpy stpncpy strcasecmp strcasecmp_l strcasestr strcat strchr strchrnul strcmp
    strcoll strcoll_l strcpy strcspn strdup strerror strerror_l strerror_r strerrordesc_np strerrorname_np strfromd
    strfromf strfromf128 strfromf32 strfromf32x strfromf64 strfromf64x strfroml strfry strftime strftime_l strlen
    strncasecmp strncasecmp_l strncat strncmp strncpy strndup strnlen strpbrk strptime strptime_l strrchr strsep
    strsignal strspn strstr strtod strtod_l strtof strtof128 strtof128_l strtof32 strtof32_l strtof32x strtof32x_l
    strtof64 strtof64_l strtof64x strtof64x_l strtof_l strtok strtok_r strtol strtol_l strtold strtold_l strtoll_l
    strtoq strtoul strtoul_l strtoull_l strtouq strverscmp strxfrm strxfrm_l surf1DLayeredread surf1DLayeredwrite
    surf1Dread surf1Dwrite surf2DLayeredread surf2DLayeredwrite surf2Dread surf2Dwrite surf3Dread surf3Dwrite
    surfCubemapLayeredread surfCubemapLayeredwrite surfCubemapread surfCubemapwrite suseconds_t swapcontext switch
    swprintf swscanf syncthreads_and syncthreads_count syncthreads_or system tan tanh tempnam tex1D tex1DGrad
    tex1DLayered tex1DLayeredGrad tex1DLayeredLod tex1DLod tex1Dfetch tex2D tex2DGrad tex2DLayered tex2DLayeredGrad
    tex2DLayeredLod tex2DLod tex2Dgather tex3D tex3DGrad tex3DLod texCubemap texCubemapGrad texCubemapLayered
    texCubemapLayeredGrad texCubemapLayeredLod texCubemapLod tgamma threadIdx throw time time_t timegm timelocal
    timer_create timer_delete timer_getoverrun timer_gettime timer_settime timer_t timespec timespec_get
    timespec_getres timeval timex timezone tm tmp tmpfile tmpfile64 tmpnam tmpnam_r tolower tolower_l totalorder
    totalordermag toupper toupper_l towctrans towctrans_l towlower towlower_l towupper towupper_l true trunc tzname
    tzset u_char u_int u_int16_t u_int32_t u_int64_t u_int8_t u_long u_quad_t u_short uchar1 uchar2 uchar3 uchar4
    ucontext_t ufromfp ufromfpx uid_t uint uint1 uint16_t uint2 uint2double uint3 uint32_t uint4 uint64_t uint8_t
    uint_fast16_t uint_fast32_t uint_fast64_t uint_fast8_t uint_least16_t uint_least32_t uint_least64_t uint_least8_t
    uintmax_t uintptr_t ull2double ullmax ullmin ulong ulong1 ulong2 ulong3 ulong4 ulong4_16a ulong4_32a ulonglong1
    ulonglong2 ulonglong3 ulonglong4 ulonglong4_16a ulonglong4_32a umax umin ungetc ungetwc unlockpt unsetenv unshare
    ures useconds_t uselocale ushort ushort1 ushort2 ushort3 ushort4 va_list valloc vasprintf vdprintf vfprintf
    vfscanf vfwprintf vfwscanf void vprintf vscanf vsnprintf vsprintf vsscanf vswprintf vswscanf vwprintf vwscanf
    warpSize wcpcpy wcpncpy wcrtomb wcscasecmp wcscasecmp_l wcscat wcschr wcschrnul wcscmp wcscoll wcscoll_l wcscpy
    wcscspn wcsdup wcsftime wcsftime_l wcslen wcsncasecmp wcsncasecmp_l wcsncat wcsncmp wcsncpy wcsnlen wcsnrtombs
    wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod wcstod_l wcstof wcstof128 wcstof128_l wcstof32 wcstof32_l wcstof32x
    wcstof32x_l wcstof64 wcstof64_l wcstof64x wcstof64x_l wcstof_l wcstok wcstol wcstol_l wcstold wcstold_l wcstoll_l
    wcstombs wcstoq wcstoul wcstoul_l wcstoull_l wcstouq wcswcs wcswidth wcsxfrm wcsxfrm_l wctob wctomb wctrans
    wctrans_l wctrans_t wctype wctype_l wctype_t wcwidth wint_t wmemchr wmemcmp wmemcpy wmemmove wmempcpy wmemset
    wprintf wscanf y0 y1 yn
"""
_MACROS: Final = frozenset(_MACRO_WORDS.split())
_DECLARED: Final = frozenset(_DECLARED_WORDS.split())


def is_macro(name: str) -> bool:
    """True for a macro, which the preprocessor replaces wherever the name stands."""
    return name in _MACROS or _FAMILIES.fullmatch(name) is not None


def is_declared(name: str) -> bool:
    """True for a macro, and for a function, an object or a type that a header declares in the global scope."""
    return name in _DECLARED or _OF_A_TYPE.sub("", name) in _DECLARED or is_macro(name)
