import type { Random } from '../support/random.ts';
import { ARGUMENTS, BLANKS, PIECES, SEPARATORS, WRAPPERS } from './hostile-pieces.ts';

// Scripts that try to run more than they seem to. Most begin with commands that the rules of the trial allow, in some
// spelling, in which pieces are inserted, removed or wrapped around. The others are tokens in any order.

/** Commands that the rules of the trial allow, and commands that they do not. */
const COMMANDS: readonly [string[], ...string[][]] = [
  ['git', 'status'],
  ['git', 'log', '-n', '1'],
  ['cargo', 'check'],
  ['/trial/programs/tool', 'look'],
  ['tool', 'look', 'here'],
  ['echo', 'hello', 'world'],
  ['say', 'hello'],
  ['cat', 'file'],
  ['find', '.', '-name', 'x'],
  ['sed', '-n', '1,5p', 'file'],
  ['uniq', 'file'],
  ['grep', '-r', 'x'],
  ['git', 'push'],
  ['wipe', '-rf', '/'],
  ['evil'],
  ['find', '.', '-exec', 'evil'],
];
export function generateScript(random: Random): string {
  if (random.chance(0.15)) return tokens(random);
  let script = commandText(random);
  for (let more = random.below(3); more > 0; more -= 1)
    script += (random.chance(0.7) ? random.pick(SEPARATORS) : random.pick(PIECES)) + commandText(random);
  if (random.chance(0.15)) {
    const [before, after] = random.pick(WRAPPERS);
    script = before + script + after;
  }
  for (let changes = random.chance(0.5) ? 0 : 1 + random.below(3); changes > 0; changes -= 1)
    script = changed(script, random);
  return script.replaceAll('\0', '');
}

function tokens(random: Random): string {
  let script = random.chance(0.6) ? 'git status' : '';
  for (let left = 1 + random.below(10); left > 0; left -= 1)
    script += random.pick(PIECES) + (random.chance(0.3) ? ' ' : '');
  return script;
}

function commandText(random: Random): string {
  // The rules allow the first ten.
  const words = random.chance(0.85) ? COMMANDS[random.below(12)] : random.pick(COMMANDS);
  const extra = Array.from({ length: random.chance(0.5) ? 0 : random.below(3) }, () => random.pick(ARGUMENTS));
  return [...(words ?? ['git', 'status']), ...extra]
    .map((word, index) => (index === 0 ? '' : random.chance(0.8) ? ' ' : random.pick(BLANKS)) + spelled(word, random))
    .join('');
}

/** Spells a word for a script: bare, or quoted in one way or in several. */
function spelled(word: string, random: Random): string {
  if (random.chance(0.6)) return word;
  const at = random.below(word.length + 1);
  if (random.chance(0.3) && word.length > 1)
    return spelled(word.slice(0, at), random) + spelled(word.slice(at), random);
  switch (random.below(6)) {
    case 0:
      return `'${word.replaceAll("'", "'\\''")}'`;
    case 1:
      return `"${word.replace(/["\\$`]/g, '\\$&')}"`;
    case 2:
      return `"${word}"`;
    case 3:
      return `${word.slice(0, at)}\\${word.slice(at)}`;
    case 4:
      return `${word.slice(0, at)}\\\n${word.slice(at)}`;
    default:
      return `$'${word.replace(/['\\]/g, '\\$&')}'`;
  }
}

function changed(script: string, random: Random): string {
  const at = random.below(script.length + 1);
  const end = at + random.below(4);
  switch (random.below(5)) {
    case 0:
      return script.slice(0, at) + script.slice(end);
    case 1:
      return script.slice(0, end) + script.slice(at);
    case 2:
      return script.slice(0, at) + String.fromCharCode(random.below(256)) + script.slice(at);
    default:
      return script.slice(0, at) + random.pick(PIECES) + script.slice(at);
  }
}
