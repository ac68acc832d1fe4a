// The only place where an entry becomes the keeper's START message.
import { encodeCommand, encodeRestart, StartKind } from '@shellfleet/keeper';
import { DEFAULTS } from '@shellfleet/protocol';
import type { ShellStart } from './shell.ts';

export function encodeStart(entry: ShellStart): { kind: number; payload: Uint8Array } {
  switch (entry.type) {
    case 'command': {
      const payload = encodeCommand({
        script: typeof entry.script === 'string' ? Buffer.from(entry.script) : entry.script,
        cwd: entry.cwd ?? '',
        env: entry.env ?? {},
        stdin: entry.stdin,
        timeoutMs: entry.timeoutMs ?? 0,
        noOutputTimeoutMs: entry.noOutputTimeoutMs ?? 0,
        killGraceMs: entry.killGraceMs ?? DEFAULTS.command.killGraceMs,
      });
      return { kind: StartKind.command, payload };
    }
    case 'restart':
      return { kind: StartKind.restart, payload: encodeRestart(entry.terminationTimeoutMs) };
  }
}
