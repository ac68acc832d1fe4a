import { fuzzBytes } from '@shellfleet/protocol/test-support';
import { describe, expect, test } from 'vitest';
import { parseFileRecords, parsePackedFiles } from './file-records.ts';
import { MalformedFrame } from './frames.ts';
import {
  decodeDirectory,
  decodeEnd,
  decodeFileEnd,
  decodeHello,
  decodeLogMessage,
  decodeProcesses,
  decodeRefusal,
  uint32s,
  uint64s,
} from './messages.ts';
import { decodeTerminalEnd, decodeTerminalOutput } from './terminal-messages.ts';

// A keeper shares a sandbox with foreign code, so every payload decodes, or is refused as a malformed frame.

const hello = Buffer.concat([uint32s(3, 0, 1, 0), uint64s(1, 2, 3, 4), Buffer.alloc(64, 'a'), Buffer.from('why')]);
const end = Buffer.concat([uint32s(0, 0x01000000, 1, 5), uint64s(1, 2, 3, 4), Buffer.from('reason')]);

describe('payloads of a keeper, for any bytes', () => {
  test.each<[string, (bytes: Uint8Array) => unknown, Uint8Array]>([
    ['HELLO', decodeHello, hello],
    ['END', decodeEnd, end],
    ['REFUSED', (bytes) => decodeRefusal(bytes[0] ?? 0), Uint8Array.of(1)],
    ['LOG', decodeLogMessage, Buffer.from('dialing failed')],
    ['a list of processes', decodeProcesses, Buffer.from('12 sleep 100\0')],
    ['a directory', decodeDirectory, Buffer.from('/workspace/ä')],
    ['a list of files', parseFileRecords, Buffer.from('f\x0012\x00644\x0017\0name\0\0')],
    [
      'packed files',
      (bytes) => parsePackedFiles(Buffer.from(bytes)),
      Buffer.concat([uint32s(0, 0o644), uint64s(2), Buffer.from('ab')]),
    ],
    ['FILE_ENDED', decodeFileEnd, Buffer.concat([uint32s(0, 0), uint64s(1, 2)])],
    ['TERMINAL_OUTPUT', decodeTerminalOutput, Buffer.concat([uint64s(3), Buffer.from('text')])],
    ['TERMINAL_ENDED', decodeTerminalEnd, Buffer.concat([uint32s(0, 0), Buffer.from('why')])],
  ])('are decoded as %s, or refused as malformed', (_name, decode, valid) => {
    let decoded = 0;
    fuzzBytes([valid], (bytes) => {
      try {
        decode(bytes);
        decoded += 1;
      } catch (error) {
        expect(error).toBeInstanceOf(MalformedFrame);
      }
    });
    expect(decoded).toBeGreaterThan(0);
  });
});
