import type { CliOutput } from './terminal.ts';

/** Shows the client's warnings like other messages, and leaves those of others to Node. */
export function showWarnings(terminal: CliOutput): void {
  const others = process.listeners('warning');
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (warning.name === 'ShellfleetWarning') terminal.say(warning.message);
    else for (const listener of others) listener.call(process, warning);
  });
}
