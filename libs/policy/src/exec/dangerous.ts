// Commands that destroy, by their words. The list is advice:
// `cmd=rm; $cmd -rf /` is not found. The sandbox is what holds.
import { nameOf } from './hidden-commands.ts';
import type { CommandWords } from './plain-script.ts';

const DESTROYING = /^(rm|dd|mkfs(\..+)?|mkswap|fdisk|sfdisk|parted|wipefs|blkdiscard|shutdown|reboot|halt|poweroff)$/;

/** Takes a command and what it runs in its turn. */
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

/** GNU accepts every unambiguous beginning of `--force`. */
function forces(args: readonly string[]): boolean {
  const end = args.indexOf('--');
  return (end < 0 ? args : args.slice(0, end)).some((arg) => /^-[^-]*f/.test(arg) || /^--f(o(r(ce?)?)?)?$/.test(arg));
}
