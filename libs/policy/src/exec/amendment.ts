import type { PrefixRule } from '@shellfleet/protocol';
import type { CommandWords } from './plain-script.ts';

/**
 * Programs and builtins that run what their later words say: a rule about them would allow anything. Some builtins do so by the way:
 * bash runs `$(…)` in the subscript of a name, as in `test -v 'a[$(rm x)]'`.
 */
const INTERPRETERS = new Set(
  `sh bash dash ash zsh ksh mksh fish csh tcsh rbash pwsh powershell python py pypy ipython node nodejs deno bun tsx ts-node
   perl ruby irb php lua luajit osascript tclsh wish expect Rscript R julia java jshell scala groovy elixir iex erl ghci
   awk gawk mawk nawk sed ed ex vi vim nvim emacs less more man gdb sqlite3 psql mysql jq make cmake ninja just task
   env sudo doas su command builtin exec eval source . trap alias unalias export set unset declare typeset local readonly
   hash enable shopt test [ printf read mapfile readarray getopts let wait bind complete compgen fc history coproc nohup nice ionice time timeout setsid stdbuf xargs parallel chroot unshare nsenter setpriv runuser
   busybox toybox watch strace ltrace flock chrt taskset find fd entr script screen tmux at batch crontab
   ssh scp sftp rsync tar zip cpio sort split docker podman nerdctl kubectl npx pnpx bunx uvx pipx dlx ld.so`.split(
    /\s+/,
  ),
);
/** Package managers and others that run programs by a subcommand; the option before it hides which. */
const LAUNCHERS = new Set(
  'git npm pnpm yarn cargo go pip uv poetry gem bundle mvn gradle dotnet composer apt-get apt'.split(' '),
);
const RUNS = new Set('run exec dlx x start test run-script explore shell'.split(' '));

/** A rule that allows a command by all of its words, or undefined where that would allow more than a person sees. */
export function amendmentFor(command: CommandWords): PrefixRule | undefined {
  const pattern = command.map(({ text }) => text);
  const [name = '', second] = pattern;
  if (!command.every(({ literal, text }) => literal && text.length > 0 && text.length <= 1_024)) return undefined;
  // What lies at a path may be what the session has put there, also after the answer.
  if (pattern.length > 64 || name.includes('/') || isInterpreter(name)) return undefined;
  if (LAUNCHERS.has(name) && (second === undefined || second.startsWith('-') || RUNS.has(second))) return undefined;
  return { pattern, decision: 'allow' };
}

/** `python3.11` is `python`. */
function isInterpreter(name: string): boolean {
  return INTERPRETERS.has(name) || INTERPRETERS.has(name.replace(/[-.0-9]+$/, ''));
}
