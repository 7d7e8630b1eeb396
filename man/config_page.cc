// SPDX-License-Identifier: BSD-3-Clause
// Prints ucxlike_config(7) from the tables that the library reads its variables by. What is not in
// a table is in the text below. config_page.sh holds the committed page to the output.
#include "ucp/core/config.h"
#include "ucs/stats/stats.h"
#include "uct/base/config.h"

#include <cctype>
#include <cstdio>

namespace {

// Text as mdoc: nothing at the start of a line may look like a macro.
void text(const char *s)
{
    if (*s == '.' || *s == '\'') {
        printf("\\&");
    }
    for (; *s; ++s) {
        if (*s == '\\') {
            printf("\\e");
        } else {
            putchar(*s);
        }
    }
    putchar('\n');
}

void rows(const ucs::config::table &table, const char *prefix)
{
    printf(".Bl -tag -width Ds\n");
    for (const ucs::config::field &f : table.fields) {
        printf(".It Ev UCX_%s%s Ns = Ns Ar \"%s\"\n", prefix, f.name, f.value->syntax);
        text(f.doc);
        printf("Default: ");
        if (*f.deflt) {
            printf("\n.Li %s .\n", f.deflt);
        } else {
            printf("none.\n");
        }
    }
    printf(".El\n");
}

constexpr const char *head = R"(.\" SPDX-License-Identifier: BSD-3-Clause
.\" Made by man/config_page.cc from the tables of the library; do not edit.
.Dd November 20, 2026
.Dt UCXLIKE_CONFIG 7
.Os ucxlike
.Sh NAME
.Nm ucxlike_config
.Nd variables of the library
.Sh DESCRIPTION
The library is configured by variables named
.Ev UCX_<NAME> .
A value is looked up in this order:
.Bl -enum
.It
.Fn ucp_config_modify
or
.Fn uct_config_modify ,
where the program calls them
.It
.Ev <PREFIX>_UCX_<NAME>
of the environment, with the prefix that the program gave to
.Fn ucp_config_read
or one of its UCT equivalents; of the UCT equivalents
.Ev UCT_<PREFIX>_<NAME>
before it
.It
.Ev UCX_<NAME>
of the environment; of the UCT equivalents
.Ev UCT_<NAME>
before it
.It
lines
.Li UCX_<NAME>=value
of the file that the program named in one of these calls
.It
lines
.Li UCX_<NAME>=value
of
.Pa ucx.conf ,
in the current directory, in
.Ev UCX_CONFIG_DIR ,
in
.Ev HOME ,
or in
.Pa /etc/ucx
.It
the default
.El
.Pp
A section of a file, which begins with
.Li [NAME] ,
may name conditions before its variables:
.Li "CPU vendor" ,
.Li "CPU model"
(as in
.Pa /proc/cpuinfo )
and
.Li "Product name" ,
each with a pattern as of
.Xr fnmatch 3 .
Its variables count where all of them hold.
.Pp
Values are read when an object is created and do not change afterwards. A value that does not parse
makes the creation fail with
.Dv UCS_ERR_INVALID_PARAM .
.Pp
What is set and has no effect is reported once in a process, by
.Fn ucp_init :
an unknown variable with a warning that has the nearest known name; a variable of UCX that is not
below with its reason, at level
.Li info ,
or as a warning where the user asks for a behaviour that the library does not have; a transport or
device that does not exist with a warning that lists what exists. With
.Ev UCX_STRICT
what would be a warning makes
.Fn ucp_init
fail. A variable of UCX that has UCX's default is not reported.
.Pp
Sizes are bytes, with
.Li k , m , g
for powers of 1024, or
.Li inf
or
.Li auto .
Times have a unit:
.Li us , ms , s , m .
The libfabric provider has further variables, see
.Xr fi_ucxlike 7 .
)";

constexpr const char *process = R"(.Ss The process
.Bl -tag -width Ds
.It Ev UCX_LOG_LEVEL Ns = Ns Ar fatal | error | warn | diag | info | debug | trace | req | data
What is logged. A program that wants the lines for itself calls
.Fn ucs_log_push_handler
of
.In ucs/debug/log_def.h .
Default:
.Li warn .
.It Ev UCX_LOG_FILE Ns = Ns Ar "<stdout|stderr|file:path|path>"
Where it is logged. In a path
.Li %h
is replaced by the name of the host and
.Li %p
by the process id.
Default:
.Li stderr ,
where UCX has
.Li stdout .
.It Ev UCX_LOG_FILE_SIZE Ns = Ns Ar size
How long the file may get; what is longer begins it anew.
Default:
.Li inf .
.It Ev UCX_LOG_FILE_ROTATE Ns = Ns Ar n
How many of the files before it are kept, as
.Ar path Ns Li .1
(the newest) and so on.
Default: 0.
.It Ev UCX_LOG_FILE_FILTER Ns = Ns Ar pattern
Only lines of source files that match are logged;
.Li *
and
.Li \&?
as in a shell, compared with the whole path that the compiler saw.
Default:
.Li * .
.It Ev UCX_WARN_UNUSED_ENV_VARS Ns = Ns Ar y | n
Warn about variables that begin with
.Ev UCX_
and are not known. With
.Li n
they are no error of
.Ev UCX_STRICT
either.
Default:
.Li y .
.It Ev UCX_CONFIG_DIR Ns = Ns Ar path
A folder with a
.Pa ucx.conf .
.It Ev UCX_TCP_CORE Ns = Ns Ar name
The provider of libfabric behind the transport
.Li tcp .
Default:
.Li tcp .
.El
)";

} // namespace

int main()
{
    const uct_md_config md("");
    const uct_iface_config iface("");
    const uct_cm_config cm("");
    printf("%s%s.Ss Contexts and workers (UCP)\n", head, process);
    rows(ucp::config_table, "");
    printf(".Ss Statistics\n"
           "Read once in a process, without the program's prefix. docs/statistics.md explains the "
           "reports.\n");
    rows(ucs::stats::config_table, "STATS_");
    printf(".Ss Memory domains (UCT)\n"
           "Once for each component, as\n.Li UCX_TCP_REG_NONBLOCK .\n");
    rows(md.table(), "<COMPONENT>_");
    printf(".Ss Interfaces (UCT)\n"
           "Once for each transport, as\n.Li UCX_SHM_SEG_SIZE .\n");
    rows(iface.table(), "<TRANSPORT>_");
    printf(".Ss Connection managers (UCT)\n");
    rows(cm.table(), "<COMPONENT>_CM_");
    printf(".Sh SEE ALSO\n.Xr ucxlike 7 ,\n.Xr fi_ucxlike 7 ,\n.Xr ucp_config 3 ,\n"
           ".Xr uct_config 3\n");
    return 0;
}
