// Lists programs and builtins that start the commands which their words name. Rules find commands inside these programs
// only.

export interface Launcher {
  /** Whether the words after the launcher's name are the command that it starts. */
  readonly wraps: boolean;
  /** Number of operands before the started command: 1 for `timeout 5 make`. */
  readonly ownWords: number;
  /**
   * Whether every argument may be a script, as in `su -c 'make all'`. Otherwise only an argument with blanks or
   * separators may be one.
   */
  readonly takesScripts: boolean;
  /** Whether the launcher joins its arguments to one script: `ssh host make 'all; ls'`. */
  readonly joins: boolean;
  /**
   * Pattern of the words that must precede a started command, such as `-exec` of `find`. Default: any word may precede
   * it.
   */
  readonly after?: RegExp;
}

const NO_LAUNCHER: Launcher = { wraps: false, ownWords: 0, takesScripts: false, joins: false };
function named(names: string, differing: Partial<Launcher>): [string, Launcher][] {
  const launcher = { ...NO_LAUNCHER, ...differing };
  return names.split(/\s+/).map((name) => [name, launcher]);
}

const LAUNCHERS: ReadonlyMap<string, Launcher> = new Map([
  ...named(
    `sudo doas run0 pkexec gosu su-exec setpriv capsh runuser env command builtin exec nohup nice ionice chrt time setsid stdbuf unbuffer
     xargs strace ltrace perf valgrind gdb rr catchsegv eatmydata prlimit choom cpulimit fakeroot fakechroot pseudo setarch linux32 linux64
     uname26 i386 i486 i586 i686 x86_64 unshare nsenter bwrap proot firejail aa-exec systemd-run systemd-inhibit start-stop-daemon daemonize
     dbus-run-session dbus-launch xvfb-run rlwrap torsocks torify proxychains proxychains4 tini dumb-init catatonit ccache distcc
     busybox toybox entr chronic ifne pee sem hyperfine caffeinate newgrp softlimit chpst envdir setuidgid setlock pgrphack numactl cset
     ld.so nsjail minijail0 schroot fakeroot-ng cgexec dtach abduco`,
    { wraps: true },
  ),
  ...named('timeout chroot flock taskset runcon logsave faketime', { wraps: true, ownWords: 1 }),
  ...named('sg su script', { wraps: true, ownWords: 1, takesScripts: true }),
  ...named('ssh parallel watch tmux screen mosh rsh', { wraps: true, ownWords: 1, joins: true }),
  ...named('find fd fdfind', { wraps: true, after: /^-(?:exec|execdir|ok|okdir|x|X)$|^--exec(?:-batch)?$/ }),
  ...named('eval', { joins: true, takesScripts: true }),
  ...named('sh bash dash ash zsh ksh mksh rbash fish csh tcsh trap alias bind complete mapfile readarray at batch', {
    takesScripts: true,
  }),
]);

/** The dynamic linker, which starts a given program: `/lib64/ld-linux-x86-64.so.2 /bin/rm`. */
const LINKER = /^ld(?:-linux|-musl|64)?[-.\w]*\.so(?:\.\d+)?$/;

/**
 * Programs with a subcommand that starts a command: the words after the subcommand, or in a container those after the
 * container's name.
 */
const RUNNERS = new Set('npm pnpm yarn bun bundle poetry pipenv uv hatch pdm mise asdf direnv rustup conda'.split(' '));
const CONTAINER_RUNNERS = new Set('docker podman nerdctl kubectl oc lxc'.split(' '));
const RUNS = /^(?:exec|run|x|dlx|shell)$/;
const WRAPS_AFTER_ONE: Launcher = { ...NO_LAUNCHER, wraps: true, ownWords: 1 };
const WRAPS_AFTER_TWO: Launcher = { ...NO_LAUNCHER, wraps: true, ownWords: 2 };

/**
 * Returns how the program starts other programs. Returns undefined for programs inside which rules find no commands.
 */
export function launcherOf(name: string, subcommand: string | undefined): Launcher | undefined {
  if (LINKER.test(name)) return WRAPS_AFTER_ONE;
  if (RUNS.test(subcommand ?? '')) {
    if (RUNNERS.has(name)) return WRAPS_AFTER_ONE;
    if (CONTAINER_RUNNERS.has(name)) return WRAPS_AFTER_TWO;
  }
  return LAUNCHERS.get(name);
}
