import { getEventListeners } from 'node:events';
import { sessionKeys } from '@shellfleet/protocol';
import { createSealer, createSealKey } from '@shellfleet/sealing';
import { pino } from 'pino';
import { describe, expect, test, vi } from 'vitest';
import type { TerminalHandlers } from '../shell/shell-terminals.ts';
import { HostTerminal } from './host-terminal.ts';

vi.mock('@shellfleet/mailbox', async (original) => ({
  ...(await original<object>()),
  readTerminalInput: async () => [],
}));

const START = { id: '01J0000000000000000000000T', rows: 1, columns: 1, env: {}, from: 0, resumeOnly: false };

describe('a terminal of a host', () => {
  test('leaves no listener on the signal of its session after its end', async () => {
    const session = new AbortController();
    for (let terminals = 0; terminals < 20; terminals += 1) {
      const terminal = new HostTerminal(
        START,
        { shown: 0, rawTo: 0 },
        {
          mailbox: {
            owner: { redis: {}, keys: sessionKeys('ns', 't', 's'), fence: 1, host: 'h' } as never,
            appendTerminalOutput: async ({ number, messages }) => ({ type: 'stored', next: number + messages.length }),
          },
          sealer: createSealer([createSealKey()]),
          signal: session.signal,
          logger: pino({ level: 'silent' }),
          output: {
            createStage: () =>
              ({ push: (bytes: Buffer) => bytes, end: () => Buffer.alloc(0), pendingBytes: 0 }) as never,
            secrets: [],
          },
        },
      );
      let keeper: TerminalHandlers | undefined;
      terminal.connect({
        open(_start, handlers) {
          keeper = handlers;
          return { input() {}, resize() {}, ack() {}, close() {} };
        },
      });
      keeper?.onEnd({ reason: 'exited', exitCode: 0, signal: 0, problem: '' } as never);
      await terminal.done;
    }
    expect(getEventListeners(session.signal, 'abort')).toEqual([]);
  });
});
