//! The end of each help text: examples, and the page of the book that has the rest.

pub(super) const ALL: &str = "\
Examples:
  kyocho                                 a Scheme prompt
  kyocho run examples/sieve.scm 700      run a program with an argument
  kyocho tour                            a demonstration of microprocesses, then a prompt
  echo '(+ 40 2)' | kyocho               evaluate standard input and print the values
  kyocho unix --net none -- sh           a shell without network access
  kyocho serve                           one Scheme system for several users
  kyocho connect                         open a session in it
  kyocho jupyter install --user          make Scheme available in Jupyter notebooks
  kyocho top                             watch the threads of all your running Kyocho programs
  kyocho trace -- kyocho run a.scm       record a timeline of a program
  kyocho dsm run -n 4 ./sor              four processes that share memory
  kyocho paper --quick                   the figures of the five papers, measured here

At the prompt: Tab completes names, Ctrl-C stops an evaluation, Ctrl-D leaves, ,help lists commands.
`kyocho COMMAND --help` explains a command. The book begins at docs/README.md.
Exit codes: 0 success, 1 the program failed, 2 the command line was wrong.";

pub(super) const RUN: &str = "\
Examples:
  kyocho run examples/first.scm
  kyocho run examples/sieve.scm 700      (command-line) returns (\"examples/sieve.scm\" \"700\")
  kyocho run -L lib program.scm          (import (a b)) reads lib/a/b.sld
  kyocho run /dev/stdin <program.scm     the program on standard input
  kyocho --engine deep --cell-cache off run ack.scm
                                         paper 4's evaluator; each cons sends a message

More: docs/scheme.md.";

pub(super) const TOUR: &str = "\
Examples:
  kyocho tour
  kyocho tour </dev/null                 the demonstration without the prompt

More: docs/start.md.";

pub(super) const UNIX: &str = "\
Examples:
  kyocho unix -- ls -l                   with the files and the network of this machine
  kyocho unix --net none -- sh           a shell without network access
  kyocho unix --root empty --mount /usr:/usr:ro --mount /lib:/lib:ro --mount /lib64:/lib64:ro \\
      -- /usr/bin/env                    the program sees these three folders only
  kyocho unix --memory 512 --processes 20 --cpu 60 -- ./program
                                         with limits
  kyocho unix --trace -- ./program       list its system calls

Exit codes: those of the program; 126 or 127 if it cannot be executed, 128 + N if signal N ended
it, 125 if the UNIX server could not be started or was killed.
More: docs/tutorials/untrusted.md, docs/unix.md.";

pub(super) const SERVE: &str = "\
Examples:
  kyocho serve                           only you may connect, by kyocho connect
  kyocho serve --listen nrepl            editors may connect, too
  kyocho serve --config kyocho.toml      users, limits and addresses from a file

A configuration:
  listen = [\"unix:serve.sock\"]
  [user.ada]
  uid = 1000

SIGHUP reads the configuration again; SIGTERM ends the server.
More: docs/tutorials/lisp-server.md, docs/serve.md.";

pub(super) const CONNECT: &str = "\
Examples:
  kyocho connect                         the server that you started by kyocho serve
  kyocho connect /run/kyocho/serve.sock
  echo '(+ 40 2)' | kyocho connect       evaluate standard input and print the values

More: docs/serve.md.";

pub(super) const NREPL_PORT: &str = "\
Examples:
  kyocho serve --listen nrepl            in one terminal
  kyocho nrepl-port                      in another one, in the folder of your project
  kyocho nrepl-port nrepl.sock --port 7888

Then connect the editor as to a running REPL. Ctrl-C closes the port.
More: docs/serve.md, section \"From an editor\".";

pub(super) const JUPYTER: &str = "\
Examples:
  kyocho jupyter install --user
  jupyter console --kernel kyocho

More: docs/serve.md.";

pub(super) const PS: &str = "\
Examples:
  kyocho ps                              all your Kyocho programs
  kyocho ps 4711                         one process
  kyocho ps --json 4711                  every field, for other programs

A program is listed if it is `kyocho` itself or runs with KYOCHO_CONTROL=1.
More: docs/control.md.";

pub(super) const TOP: &str = "\
Examples:
  kyocho top
  KYOCHO_CONTROL=1 ./program & kyocho top

Keys: ? help, q leave, s sort, / filter, K kill, z suspend, r resume, p priority.
More: docs/control.md.";

pub(super) const TRACE: &str = "\
Examples:
  kyocho trace -- kyocho run examples/first.scm
                                         a program, from its start to its end
  kyocho trace --seconds 5 4711          five seconds of a running process
  kyocho trace -o timeline.json          the only running Kyocho process

Open the file in https://ui.perfetto.dev.
More: docs/control.md.";

pub(super) const KILL: &str = "\
Examples:
  kyocho kill 4711:12                    microprocess 12 of process 4711
  kyocho kill 4711:12 4711:13

More: docs/control.md.";

pub(super) const SUSPEND: &str = "\
Examples:
  kyocho suspend 4711:12                 microprocess 12 of process 4711

More: docs/control.md.";

pub(super) const RESUME: &str = "\
Examples:
  kyocho resume 4711:12                  microprocess 12 of process 4711

More: docs/control.md.";

pub(super) const PRIORITY: &str = "\
Examples:
  kyocho priority 4711:12 40             more urgent than the usual priority, 31

More: docs/control.md.";

pub(super) const PAPER: &str = "\
Examples:
  kyocho paper                           everything; at most an hour on two cores
  kyocho paper --quick                   the same at small size
  kyocho paper --only 1.table2           one table
  kyocho paper --only 3,4 --out /tmp/p   all of papers 3 and 4, into another folder

More: docs/papers.md.";
