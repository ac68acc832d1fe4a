const MOST_REMEMBERED = 1_000;
const warned = new Set<string>();

/** Warns the user of this process once. Node prints it, and emits `warning` with the name `ShellfleetWarning`. */
export function warn(message: string): void {
  if (warned.has(message) || warned.size >= MOST_REMEMBERED) return;
  warned.add(message);
  process.emitWarning(message, 'ShellfleetWarning');
}
