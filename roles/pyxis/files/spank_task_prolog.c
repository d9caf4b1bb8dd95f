/* Runs a program before each task, on the node itself, and sets in the task what the program says: what Slurm's own
 * TaskProlog does. That one runs in the container of a task that has one, where the program is missing and where Slurm
 * 24.11.0 to 24.11.6 and 25.05.0 to 25.05.1 miss their own libraries, so that no container starts (NVIDIA/pyxis#163).
 *
 * In plugstack.conf before the plugin that starts containers, which takes the task's variables along:
 *
 *     required spank_task_prolog.so /the/program
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <slurm/spank.h>

SPANK_PLUGIN(task_prolog, 1)

enum { MOST = 1024 * 1024 };

static const char context[] = "SLURM_SCRIPT_CONTEXT=prolog_task";

/* The task's variables, and what Slurm tells its own TaskProlog. */
static char **variables_of(spank_t spank)
{
	char **found = NULL, **all;
	size_t count = 0;

	if (spank_get_item(spank, S_JOB_ENV, &found) != ESPANK_SUCCESS || found == NULL)
		return NULL;
	while (found[count] != NULL)
		count++;
	all = calloc(count + 2, sizeof(*all));
	if (all == NULL)
		return NULL;
	memcpy(all, found, count * sizeof(*all));
	all[count] = (char *)context;
	return all;
}

static void run(const char *program, int said, char **variables)
{
	char *const arguments[] = {(char *)program, NULL};
	int nothing = open("/dev/null", O_RDONLY);

	setpgid(0, 0);
	if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(said, STDOUT_FILENO) < 0 ||
	    dup2(said, STDERR_FILENO) < 0)
		_exit(127);
	closefrom(3);
	execve(program, arguments, variables);
	_exit(127);
}

/* All that it said; NULL where there is no memory for it. */
static char *heard(int from)
{
	char *text = malloc(MOST + 1);
	size_t length = 0;
	char rest[4096];

	if (text == NULL)
		return NULL;
	for (;;) {
		int is_full = length == MOST;
		ssize_t got = read(from, is_full ? rest : text + length, is_full ? sizeof(rest) : MOST - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		if (!is_full)
			length += (size_t)got;
	}
	text[length] = '\0';
	return text;
}

static void print(const char *words)
{
	size_t left = strlen(words);

	while (left > 0) {
		ssize_t done = write(STDOUT_FILENO, words, left);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return;
		words += done;
		left -= (size_t)done;
	}
	while (write(STDOUT_FILENO, "\n", 1) < 0 && errno == EINTR)
		;
}

static char *without_spaces(char *text)
{
	char *end;

	while (*text == ' ' || *text == '\t')
		text++;
	end = text + strlen(text);
	while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	return text;
}

static void heed(spank_t spank, char *line)
{
	if (strncmp(line, "print ", 6) == 0) {
		print(line + 6);
	} else if (strncmp(line, "unset ", 6) == 0) {
		spank_unsetenv(spank, without_spaces(line + 6));
	} else if (strncmp(line, "export ", 7) == 0) {
		char *value = strchr(line, '=');

		if (value == NULL)
			return;
		*value++ = '\0';
		if (spank_setenv(spank, without_spaces(line + 7), value, 1) != ESPANK_SUCCESS)
			slurm_error("task_prolog: cannot set %s", line + 7);
	}
}

int slurm_spank_task_init(spank_t spank, int count, char **arguments)
{
	int said[2], status = 0;
	char **variables;
	char *text, *line, *rest;
	pid_t child;

	if (count < 1)
		return 0;
	variables = variables_of(spank);
	if (variables == NULL || pipe2(said, O_CLOEXEC) < 0) {
		slurm_error("task_prolog: %s cannot be run: %m", arguments[0]);
		free(variables);
		return -1;
	}
	child = fork();
	if (child == 0)
		run(arguments[0], said[1], variables);
	close(said[1]);
	free(variables);
	text = child < 0 ? NULL : heard(said[0]);
	close(said[0]);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (text == NULL || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		slurm_error("task_prolog: %s failed, status %d", arguments[0],
			    WIFEXITED(status) ? WEXITSTATUS(status) : status);
		free(text);
		return -1;
	}
	for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
		heed(spank, line);
	free(text);
	return 0;
}
