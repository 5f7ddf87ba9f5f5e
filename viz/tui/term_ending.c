/* SPDX-License-Identifier: Apache-2.0 */
/* The handler does all of it, so that no long calculation holds it up. Curses is not safe to call from
 * one: what has to be written is put together before. */
#include "viz/tui/term_ending.h"

#include <curses.h>
#include <signal.h>
#include <stddef.h>
#include <term.h>
#include <unistd.h>

/* Terminals stop at their last line. */
#define BELOW 998

static const int asking[] = { SIGINT, SIGTERM };

#define N_ASKING (sizeof(asking) / sizeof(asking[0]))

/* Made before the first signal can come: a handler cannot put text together. */
static struct {
	struct termios modes;
	char text[256];
	size_t n;
	bool caught[N_ASKING];
} back;

static void end(int number)
{
	/* Else the terminal is the shell's already, and to change it would stop this process. */
	if (tcgetpgrp(STDIN_FILENO) == getpgrp()) {
		ssize_t written = write(STDOUT_FILENO, back.text, back.n);

		(void)written;
		(void)tcsetattr(STDIN_FILENO, TCSANOW, &back.modes);
	}
	/* Its own action is the default one again, and takes effect on return. */
	(void)raise(number);
}

static int put(int c)
{
	if (back.n < sizeof(back.text))
		back.text[back.n++] = (char)c;
	return c;
}

static void add(const char *sequence)
{
	/* -1 where the name is of no text. */
	if (sequence && sequence != (const char *)-1)
		(void)tputs(sequence, 1, put);
}

static void prepare(bool mouse)
{
	const char *cup = tigetstr("cup"), *mouse_mode = tigetstr("XM");
	bool named = mouse_mode && mouse_mode != (const char *)-1;

	back.n = 0;
	add(tigetstr("sgr0"));
	add(tigetstr("op"));
	if (cup && cup != (const char *)-1)
		add(tiparm(cup, BELOW, 0));
	if (mouse && key_mouse)
		add(named ? tiparm(mouse_mode, 0) : "\033[?1000l");
	add(tigetstr("rmcup"));
	add(tigetstr("rmkx"));
	add(tigetstr("cnorm"));
}

static bool is_ignored(int number)
{
	struct sigaction action;

	return sigaction(number, NULL, &action) == 0 && !(action.sa_flags & SA_SIGINFO) &&
	       action.sa_handler == SIG_IGN;
}

void lag_term_ending_begin(const struct termios *before, bool mouse)
{
	struct sigaction action = { .sa_handler = end, .sa_flags = (int)SA_RESETHAND };

	back.modes = *before;
	prepare(mouse);
	(void)sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < N_ASKING; i++)
		(void)sigaddset(&action.sa_mask, asking[i]);
	for (size_t i = 0; i < N_ASKING; i++) {
		back.caught[i] = !is_ignored(asking[i]);
		if (back.caught[i])
			(void)sigaction(asking[i], &action, NULL);
	}
}

void lag_term_ending_end(void)
{
	for (size_t i = 0; i < N_ASKING; i++) {
		if (back.caught[i])
			(void)signal(asking[i], SIG_DFL);
	}
}
