# What C compilers have an instruction for: the machine's half of bits.py.

cdef extern from *:
    """
    #if defined(_MSC_VER) && !defined(__clang__)
    #include <intrin.h>
    static CYTHON_INLINE int windtunnel_lowest_bit(long long word) {
        unsigned long place;
    #if defined(_WIN64)
        _BitScanForward64(&place, (unsigned __int64)word);
        return (int)place;
    #else
        if (_BitScanForward(&place, (unsigned long)word)) return (int)place;
        _BitScanForward(&place, (unsigned long)((unsigned __int64)word >> 32));
        return (int)place + 32;
    #endif
    }
    static CYTHON_INLINE int windtunnel_highest_bit(long long word) {
        unsigned long place;
    #if defined(_WIN64)
        _BitScanReverse64(&place, (unsigned __int64)word);
        return (int)place;
    #else
        if (_BitScanReverse(&place, (unsigned long)((unsigned __int64)word >> 32)))
            return (int)place + 32;
        _BitScanReverse(&place, (unsigned long)word);
        return (int)place;
    #endif
    }
    #else
    static CYTHON_INLINE int windtunnel_lowest_bit(long long word) {
        return __builtin_ctzll((unsigned long long)word);
    }
    static CYTHON_INLINE int windtunnel_highest_bit(long long word) {
        return 63 - __builtin_clzll((unsigned long long)word);
    }
    #endif
    static CYTHON_INLINE long long windtunnel_bit_at(long long place) {
        return (long long)(1ULL << place);
    }
    static CYTHON_INLINE long long windtunnel_without_lowest(long long word) {
        return (long long)((unsigned long long)word & ((unsigned long long)word - 1ULL));
    }
    static CYTHON_INLINE int windtunnel_count_bits(long long word) {
        unsigned long long left = (unsigned long long)word;
        left -= (left >> 1) & 0x5555555555555555ULL;
        left = (left & 0x3333333333333333ULL) + ((left >> 2) & 0x3333333333333333ULL);
        left = (left + (left >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
        return (int)((left * 0x0101010101010101ULL) >> 56);
    }
    """
    int lowest_bit "windtunnel_lowest_bit"(long long word) noexcept nogil
    int highest_bit "windtunnel_highest_bit"(long long word) noexcept nogil
    long long bit_at "windtunnel_bit_at"(long long place) noexcept nogil
    long long without_lowest "windtunnel_without_lowest"(long long word) noexcept nogil
    int count_bits "windtunnel_count_bits"(long long word) noexcept nogil
