import type { CliOutput } from './terminal.ts';

/** Warnings of the client become messages like all others. Node's own way of printing is for the other warnings. */
export function showWarnings(terminal: CliOutput): void {
  const others = process.listeners('warning');
  process.removeAllListeners('warning');
  process.on('warning', (warning) => {
    if (warning.name === 'ShellfleetWarning') terminal.say(warning.message);
    else for (const listener of others) listener.call(process, warning);
  });
}
