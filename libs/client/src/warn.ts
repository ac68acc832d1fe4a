const MOST_REMEMBERED = 1_000;
const warned = new Set<string>();

/**
 * Tells whoever runs this process, once: Node prints the warning on stderr, and emits it as the event `warning` of `process`, with the name
 * `ShellfleetWarning`.
 */
export function warn(message: string): void {
  if (warned.has(message) || warned.size >= MOST_REMEMBERED) return;
  warned.add(message);
  process.emitWarning(message, 'ShellfleetWarning');
}
