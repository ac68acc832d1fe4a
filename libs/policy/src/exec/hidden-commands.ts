import type { CommandWords } from './plain-script.ts';
import { readScript } from './read-script.ts';

/** Programs and builtins that run the command which their arguments name. */
const WRAPPERS = new Set(
  `sudo doas env command builtin exec nohup nice ionice time timeout setsid stdbuf xargs parallel chroot unshare nsenter
   setpriv runuser busybox toybox watch strace ltrace flock chrt taskset find fd entr`.split(/\s+/),
);
/** They run a script that an argument holds. */
const SHELLS = new Set('sh bash dash ash zsh ksh mksh rbash su script eval trap'.split(' '));
const DEEPEST = 3;
/** Words of what a wrapper runs that are looked at: more than a pattern may have. They bound the time that many words take. */
const MOST_WORDS = 65;

/**
 * A command and what it plainly runs in its turn: `sudo rm -f x` runs `rm -f x`, `sh -c 'rm -f x'` as well. For what makes a
 * decision stricter, and never for what allows: it looks at every argument, and finds only what is written out.
 */
export function withHiddenCommands(command: CommandWords, depth = 0): CommandWords[] {
  const name = nameOf(command);
  if (name === undefined || depth >= DEEPEST) return [command];
  const wraps = WRAPPERS.has(name);
  if (!wraps && !SHELLS.has(name)) return [command];
  const found: CommandWords[] = [command];
  if (wraps) for (let at = 1; at < command.length; at += 1) found.push(command.slice(at, at + MOST_WORDS));
  for (const text of scriptsIn(command, name))
    for (const inner of readScript(text).commands)
      for (const hidden of withHiddenCommands(inner, depth + 1)) found.push(hidden);
  return found;
}

function scriptsIn(command: CommandWords, name: string): string[] {
  const texts = command.slice(1).map(({ text }) => text);
  if (name === 'eval') return [texts.join(' ')];
  return SHELLS.has(name) ? texts : texts.filter((text) => /[\s;&|]/.test(text));
}

/** The file name of the program: `rm` for `/bin/rm`. */
export function nameOf(command: CommandWords): string | undefined {
  const text = command[0]?.text;
  return text?.slice(text.lastIndexOf('/') + 1);
}
