import { appendTerminalInput, type TerminalInputReply } from '@shellfleet/mailbox';
import { sessionKeys } from '@shellfleet/protocol';
import { createSealer, createSealKey } from '@shellfleet/sealing';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { TerminalSender } from './terminal-sender.ts';

// Each test decides when the mailbox replies. tests/e2e/terminals.test.ts uses the real mailbox.

vi.mock(import('@shellfleet/mailbox'), async (original) => ({ ...(await original()), appendTerminalInput: vi.fn() }));
afterEach(() => void vi.mocked(appendTerminalInput).mockReset());

const keys = sessionKeys('ns', 'tenant', 's');

function open() {
  const calls: { messages: number; reply(type: 'stored'): void }[] = [];
  vi.mocked(appendTerminalInput).mockImplementation(
    (_redis, _keys, { number, messages }) =>
      new Promise<TerminalInputReply>((resolve) => {
        const reply = (type: 'stored') => resolve({ type, host: 'h', next: number + messages.length });
        calls.push({ messages: messages.length, reply });
      }),
  );
  const sender = new TerminalSender({
    ...{ redis: {} as never, sealer: createSealer([createSealKey()]), terminal: 't' },
    session: { id: 's', keys, generation: '1' } as never,
    read: () => 0,
    onReply: () => {},
    onFailed: (error) => {
      throw error;
    },
  });
  return { sender, calls };
}

describe('write to a terminal', () => {
  test('resolves when its bytes are stored, even while other writes are pending', async () => {
    const { sender, calls } = open();
    const stored: string[] = [];
    const write = (name: string, text: string) => sender.write(Buffer.from(text)).then(() => stored.push(name));
    const writes = [write('first', 'many bytes'), write('second', 'few'), write('third', 'x')];
    calls[0]?.reply('stored');
    await vi.waitFor(() => expect(calls).toHaveLength(2));
    await writes[0];
    expect(stored).toEqual(['first']);
    calls[1]?.reply('stored');
    await Promise.all(writes);
    expect([stored, calls.map(({ messages }) => messages)]).toEqual([
      ['first', 'second', 'third'],
      [1, 1],
    ]);
  });

  test('resolves when the terminal ends before the bytes are stored', async () => {
    const { sender } = open();
    const written = sender.write(Buffer.from('x'));
    sender.end();
    await written;
  });
});
