import type { CliOutput } from './terminal.ts';

/** Shows warnings of the client like other messages, and leaves all other warnings to Node. */
export function showWarnings(terminal: CliOutput): void {
  const others = process.listeners('warning');
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (warning.name === 'ShellfleetWarning') terminal.say(warning.message);
    else for (const listener of others) listener.call(process, warning);
  });
}
