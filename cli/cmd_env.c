/* SPDX-License-Identifier: Apache-2.0 */
/* laggard env: prints the variables that `record` sets, for launchers, containers and manifests that
 * start the program themselves. */
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/inject.h"
#include "schema/base/json_write.h"

/* For a shell: in single quotes. */
static void print_quoted(const char *value)
{
	putchar('\'');
	for (; *value; value++) {
		if (*value == '\'') {
			fputs("'\\''", stdout);
		} else {
			putchar(*value);
		}
	}
	putchar('\'');
}

static void print_shell(const struct lag_inject *inj)
{
	for (size_t i = 0; i < inj->n; i++) {
		printf("export %s=", inj->vars[i].name);
		print_quoted(inj->vars[i].value);
		putchar('\n');
	}
	/* What the shell has there when it reads this stays first. */
	fputs("export LD_PRELOAD=\"${LD_PRELOAD:+$LD_PRELOAD:}\"", stdout);
	print_quoted(inj->lib);
	putchar('\n');
}

static void print_docker(const struct lag_inject *inj)
{
	for (size_t i = 0; i < inj->n; i++) {
		printf("--env %s=", inj->vars[i].name);
		print_quoted(inj->vars[i].value);
		putchar('\n');
	}
	fputs("--env LD_PRELOAD=", stdout);
	print_quoted(inj->lib);
	fputs("\n--volume ", stdout);
	print_quoted(inj->lib);
	putchar(':');
	print_quoted(inj->lib);
	fputs(":ro\n--volume ", stdout);
	print_quoted(inj->dir);
	putchar(':');
	print_quoted(inj->dir);
	putchar('\n');
}

static void print_pair(struct lag_buf *out, const char *prefix, const char *name,
		       const char *middle, const char *value)
{
	lag_buf_puts(out, prefix);
	lag_buf_puts(out, name);
	lag_buf_puts(out, middle);
	lag_json_quote(out, value, strlen(value));
}

static void print_k8s(struct lag_buf *out, const struct lag_inject *inj)
{
	lag_buf_puts(out, "env:\n");
	for (size_t i = 0; i < inj->n; i++) {
		print_pair(out, "- name: ", inj->vars[i].name, "\n  value: ", inj->vars[i].value);
		lag_buf_putc(out, '\n');
	}
	print_pair(out, "- name: ", "LD_PRELOAD", "\n  value: ", inj->lib);
	lag_buf_putc(out, '\n');
}

static void print_json(struct lag_buf *out, const struct lag_inject *inj)
{
	lag_buf_puts(out, "{\n");
	for (size_t i = 0; i < inj->n; i++) {
		print_pair(out, "  \"", inj->vars[i].name, "\": ", inj->vars[i].value);
		lag_buf_puts(out, ",\n");
	}
	print_pair(out, "  \"", "LD_PRELOAD", "\": ", inj->lib);
	lag_buf_puts(out, "\n}\n");
}

static int run(const struct lag_args *args)
{
	static struct lag_inject inj;
	const char *format = lag_args_get(args, "format");
	struct lag_err err = { 0 };
	struct lag_buf out = { 0 };

	if (lag_failed(lag_inject_build(&inj, args, &err)))
		return lag_cmd_fail("env", &err);
	if (inj.conflict[0])
		lag_say("%s: it is left alone", inj.conflict);
	if (!format || !strcmp(format, "sh")) {
		print_shell(&inj);
	} else if (!strcmp(format, "docker")) {
		print_docker(&inj);
	} else if (!strcmp(format, "k8s")) {
		print_k8s(&out, &inj);
	} else {
		print_json(&out, &inj);
	}
	fputs(lag_buf_text(&out), stdout);
	lag_buf_release(&out);
	return LAG_EXIT_OK;
}

static const struct lag_opt options[] = {
	LAG_INJECT_OPTIONS{ 'F', "format", "FORMAT", "how to print (default: sh)",
			    "sh json docker k8s" },
};

const struct lag_cmd lag_cmd_env = {
	.name = "env",
	.summary = "Print the environment that makes a program record itself",
	.operands = "",
	.options = options,
	.n_options = sizeof(options) / sizeof(options[0]),
	.max_operands = 0,
	.run = run,
};
