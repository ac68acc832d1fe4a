import { type Launcher, launcherOf } from './launchers.ts';
import type { CommandWords, Word } from './plain-script.ts';
import { readScript } from './read-script.ts';

const DEEPEST = 3;
/** Most words of a started command that are read. It bounds the time, and is more than a pattern may have. */
const MOST_WORDS = 65;
const MOST_LAUNCHERS = 4;

export interface HiddenCommands {
  /** The command, and the commands that it plainly starts: `rm -f x` for `sudo rm -f x` and `sh -c 'rm -f x'`. */
  readonly commands: CommandWords[];
  /** Whether the command starts something that is not written out or cannot be parsed: `sh -c "$x"`, `sudo $x`. */
  readonly unreadable: boolean;
}

/**
 * Finds the commands that a launcher starts. They are used only for stricter decisions, because every word of a
 * launcher may begin a command.
 */
export function hiddenCommands(command: CommandWords): HiddenCommands {
  const commands: CommandWords[] = [];
  const unreadable = collect(command, 0, commands);
  return { commands, unreadable };
}

/** Adds the commands that the command starts to `found`. Returns whether it starts something that cannot be read. */
function collect(command: CommandWords, depth: number, found: CommandWords[]): boolean {
  found.push(command);
  const [outer, ...inner] = launchersIn(command);
  if (!outer) return false;
  if (depth >= DEEPEST) return true;
  if (outer.launcher.wraps)
    for (let at = 1; at < command.length; at += 1) found.push(command.slice(at, at + MOST_WORDS));
  let unreadable = false;
  for (const { at, launcher } of [outer, ...inner]) {
    const words = command.slice(at);
    unreadable ||= startsExpanded(words, launcher);
    for (const { text, isScript } of scriptsIn(words, launcher)) {
      const { form, commands } = readScript(text);
      if (form === 'unreadable' && isScript) unreadable = true;
      for (const hidden of commands) if (collect(hidden, depth + 1, found)) unreadable = true;
    }
  }
  return unreadable;
}

interface PlacedLauncher {
  at: number;
  launcher: Launcher;
}

/**
 * Returns the launchers in the command: its program, and launchers among its words (`sudo sh -c 'make all'`), one of
 * each kind.
 */
function launchersIn(command: CommandWords): PlacedLauncher[] {
  const outer = launcherAt(command, 0);
  if (!outer) return [];
  const placed: PlacedLauncher[] = [{ at: 0, launcher: outer }];
  if (!outer.wraps) return placed;
  for (let at = 1; at < command.length && placed.length < MOST_LAUNCHERS; at += 1) {
    const launcher = launcherAt(command, at);
    if (launcher && !placed.some((other) => other.launcher === launcher)) placed.push({ at, launcher });
  }
  return placed;
}

function launcherAt(command: CommandWords, at: number): Launcher | undefined {
  const name = nameOf([command[at] as Word]);
  return name === undefined ? undefined : launcherOf(name, command[at + 1]?.text);
}

/** Tells whether the shell expands a word at a place where the name of the started command, or a script, may be. */
function startsExpanded(command: CommandWords, { takesScripts, wraps, ownWords, after }: Launcher): boolean {
  if (!command.some(({ literal }) => !literal)) return false;
  if (takesScripts) return command.some(({ literal }, at) => !literal && isScriptPlace(command, at));
  if (!wraps) return false;
  if (after) return command.some(({ literal }, at) => !literal && after.test(command[at - 1]?.text ?? ''));
  let own = ownWords;
  for (let at = 1; at < command.length; at += 1) {
    const { text, literal } = command[at] as Word;
    if (!literal && !/^[A-Za-z_][A-Za-z0-9_]*=/.test(text)) return true;
    const isOption = text.startsWith('-') || /^[A-Za-z_][A-Za-z0-9_]*=/.test(text);
    // The word after an option may be the option's value.
    if (isOption || command[at - 1]?.text.startsWith('-')) continue;
    if (own === 0) return false;
    own -= 1;
  }
  return false;
}

/** Tells whether the word at `at` may be a script. The words after a shell's script are its arguments. */
function isScriptPlace(command: CommandWords, at: number): boolean {
  return at === 1 || /^-[a-zA-Z]*c$|^--(?:command|session-command)$/.test(command[at - 1]?.text ?? '');
}

interface Script {
  text: string;
  /** True if the text runs as a script. False if it is an argument that may only look like a script. */
  isScript: boolean;
}

function scriptsIn(words: CommandWords, { joins, takesScripts, wraps }: Launcher): Script[] {
  const [name, ...texts] = words.map(({ text }) => text);
  const scripts: Script[] = [];
  // The word that begins the script is not known, so the launcher's own name is included.
  if (joins) scripts.push({ text: (wraps ? [name, ...texts] : texts).join(' '), isScript: true });
  if (joins && takesScripts) return scripts;
  for (const [at, text] of texts.entries()) {
    const isScript = takesScripts && /^-[a-zA-Z]*c$|^--(?:command|session-command)$/.test(texts[at - 1] ?? '');
    for (const part of [text, ...attachedTo(text)])
      if (takesScripts || /[\s;&|]/.test(part)) scripts.push({ text: part, isScript });
  }
  return scripts;
}

/**
 * Returns the scripts that are a part of an option's word, as in `--command='make all'`, `-c'make all'`, `-qc'make
 * all'`, or the text of an alias.
 */
function attachedTo(text: string): string[] {
  const [, long] = /^(?:--)?[A-Za-z_][\w-]*=(.+)$/s.exec(text) ?? [];
  const [, short] = /^-[A-Za-z]*?[cS](.+)$/s.exec(text) ?? [];
  return [long, short].filter((part) => part !== undefined);
}

/** Returns the file name of the program: `rm` for `/bin/rm`. */
export function nameOf(command: CommandWords): string | undefined {
  const text = command[0]?.text;
  return text?.slice(text.lastIndexOf('/') + 1);
}
