// Recognises destructive commands by their words. This is only advice: `cmd=rm; $cmd -rf /` is not found.
import { nameOf } from './hidden-commands.ts';
import type { CommandWords } from './plain-script.ts';

const DESTROYING = /^(rm|dd|mkfs(\..+)?|mkswap|fdisk|sfdisk|parted|wipefs|blkdiscard|shutdown|reboot|halt|poweroff)$/;

/** Tells whether a command is dangerous. `commands` holds the command itself and the commands that it starts. */
export function isDangerous(commands: readonly CommandWords[]): boolean {
  return commands.some(destroys);
}

function destroys(command: CommandWords): boolean {
  const name = nameOf(command) ?? '';
  if (!DESTROYING.test(name)) return false;
  const args = command.slice(1).map(({ text }) => text);
  if (name === 'rm') return forces(args);
  if (name === 'dd')
    return args.some((arg) => arg.startsWith('of=/dev/') && !/^of=\/dev\/(null|stdout|stderr)$/.test(arg));
  return true;
}

/** Tells whether `--force` is among the arguments. GNU programs accept every unambiguous abbreviation of it. */
function forces(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return (end < 0 ? args : args.slice(0, end)).some((arg) => /^-[^-]*f/.test(arg) || /^--f(o(r(ce?)?)?)?$/.test(arg));
}
