/* commands.h - the commands; each reads argv by its entry of the table, and answers the exit status. */
/* SPDX-License-Identifier: MIT */
#ifndef ORCHARDCTL_COMMANDS_COMMANDS_H
#define ORCHARDCTL_COMMANDS_COMMANDS_H

struct ctl;

int cmd_cancel(struct ctl *ctl, int argc, char **argv);
int cmd_complete(struct ctl *ctl, int argc, char **argv);
int cmd_completion(struct ctl *ctl, int argc, char **argv);
int cmd_config(struct ctl *ctl, int argc, char **argv);
int cmd_cp(struct ctl *ctl, int argc, char **argv);
int cmd_create(struct ctl *ctl, int argc, char **argv);
int cmd_doctor(struct ctl *ctl, int argc, char **argv);
int cmd_exec(struct ctl *ctl, int argc, char **argv);
int cmd_get(struct ctl *ctl, int argc, char **argv);
int cmd_heartbeat(struct ctl *ctl, int argc, char **argv);
int cmd_help(struct ctl *ctl, int argc, char **argv);
int cmd_jobs(struct ctl *ctl, int argc, char **argv);
int cmd_logs(struct ctl *ctl, int argc, char **argv);
int cmd_ls(struct ctl *ctl, int argc, char **argv);
int cmd_man(struct ctl *ctl, int argc, char **argv);
int cmd_patch(struct ctl *ctl, int argc, char **argv);
int cmd_resources(struct ctl *ctl, int argc, char **argv);
int cmd_rm(struct ctl *ctl, int argc, char **argv);
int cmd_run(struct ctl *ctl, int argc, char **argv);
int cmd_shell(struct ctl *ctl, int argc, char **argv);
int cmd_top(struct ctl *ctl, int argc, char **argv);
int cmd_update(struct ctl *ctl, int argc, char **argv);
int cmd_version(struct ctl *ctl, int argc, char **argv);
int cmd_wait(struct ctl *ctl, int argc, char **argv);

#endif
