/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count_rmws.h: included before everything else where read-modify-writes are counted: each of them, and each lock, adds
 * one to a counter of the thread. So what is counted is every one that the code executes, on shared lines or not.
 */
#ifndef LEAT_BENCH_COUNT_RMWS_H
#define LEAT_BENCH_COUNT_RMWS_H

#include <pthread.h>
#include <stdint.h>

extern __thread uint64_t bench_rmws;

#define __atomic_fetch_add(...) (bench_rmws++, __atomic_fetch_add(__VA_ARGS__))
#define __atomic_fetch_sub(...) (bench_rmws++, __atomic_fetch_sub(__VA_ARGS__))
#define __atomic_fetch_or(...) (bench_rmws++, __atomic_fetch_or(__VA_ARGS__))
#define __atomic_fetch_and(...) (bench_rmws++, __atomic_fetch_and(__VA_ARGS__))
#define __atomic_fetch_xor(...) (bench_rmws++, __atomic_fetch_xor(__VA_ARGS__))
#define __atomic_add_fetch(...) (bench_rmws++, __atomic_add_fetch(__VA_ARGS__))
#define __atomic_sub_fetch(...) (bench_rmws++, __atomic_sub_fetch(__VA_ARGS__))
#define __atomic_or_fetch(...) (bench_rmws++, __atomic_or_fetch(__VA_ARGS__))
#define __atomic_and_fetch(...) (bench_rmws++, __atomic_and_fetch(__VA_ARGS__))
#define __atomic_xor_fetch(...) (bench_rmws++, __atomic_xor_fetch(__VA_ARGS__))
#define __atomic_exchange_n(...) (bench_rmws++, __atomic_exchange_n(__VA_ARGS__))
#define __atomic_exchange(...) (bench_rmws++, __atomic_exchange(__VA_ARGS__))
#define __atomic_compare_exchange_n(...) (bench_rmws++, __atomic_compare_exchange_n(__VA_ARGS__))
#define __atomic_compare_exchange(...) (bench_rmws++, __atomic_compare_exchange(__VA_ARGS__))
#define pthread_mutex_lock(...) (bench_rmws++, pthread_mutex_lock(__VA_ARGS__))
#define pthread_mutex_trylock(...) (bench_rmws++, pthread_mutex_trylock(__VA_ARGS__))
#define pthread_mutex_unlock(...) (bench_rmws++, pthread_mutex_unlock(__VA_ARGS__))
#define pthread_spin_lock(...) (bench_rmws++, pthread_spin_lock(__VA_ARGS__))

#endif
