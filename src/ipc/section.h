/*
 * section.h - what shm.c asks of each section of the mapping. Private to src/ipc.
 *
 * size: bytes that a section of that capacity takes; fixed_size: how many of them, from its start, must be there before
 * anything is touched, where the rest is taken as it is needed (room.h). init: memory is zero-filled,
 * and pages that stay zero must stay untouched. adopt: an earlier server's data,
 * all of whose processes are dead; idempotent, since the adopter may die as well.
 */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARD_IPC_SECTION_H
#define ORCHARD_IPC_SECTION_H

#include <stddef.h>
#include <stdint.h>

struct shm_exec_lock;
struct shm_index;
struct shm_jobs;
struct shm_lanes;
struct shm_life;
struct shm_notify;
struct shm_sandboxes;
struct shm_scoreboard;

size_t server_life_section_size(void);
void server_life_section_init(struct shm_life *life);
void server_life_section_adopt(struct shm_life *life);

size_t scoreboard_section_size(void);
void scoreboard_section_init(struct shm_scoreboard *board);
void scoreboard_section_adopt(struct shm_scoreboard *board);

size_t notify_section_size(uint32_t sandboxes, uint32_t jobs);
void notify_section_init(struct shm_notify *notify, uint32_t sandboxes, uint32_t jobs);
void notify_section_adopt(struct shm_notify *notify, uint32_t sandboxes, uint32_t jobs);

size_t sandbox_table_section_size(uint32_t sandboxes);
size_t sandbox_table_section_fixed_size(uint32_t sandboxes);
void sandbox_table_section_init(struct shm_sandboxes *table, uint32_t sandboxes);
void sandbox_table_section_adopt(struct shm_sandboxes *table, uint32_t sandboxes);

size_t job_table_section_size(uint32_t jobs);
size_t job_table_section_fixed_size(uint32_t jobs);
void job_table_section_init(struct shm_jobs *table, uint32_t jobs);
void job_table_section_adopt(struct shm_jobs *table, uint32_t jobs);

size_t lane_table_section_size(uint32_t lanes);
size_t lane_table_section_fixed_size(uint32_t lanes);
void lane_table_section_init(struct shm_lanes *table, uint32_t lanes);
void lane_table_section_adopt(struct shm_lanes *table, uint32_t lanes);

size_t exec_lock_section_size(uint32_t sandboxes, uint32_t nodes);
void exec_lock_section_init(struct shm_exec_lock *lock, uint32_t sandboxes, uint32_t nodes);
void exec_lock_section_adopt(struct shm_exec_lock *lock, uint32_t sandboxes, uint32_t nodes);

size_t record_index_section_size(uint32_t records);
size_t record_index_section_fixed_size(uint32_t records);
void record_index_section_init(struct shm_index *index, uint32_t records);
void record_index_section_adopt(struct shm_index *index, uint32_t records);

#endif
