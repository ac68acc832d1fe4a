import {
  encodeFrame,
  entryIdToBytes,
  type Frame,
  FrameDecoder,
  FrameType,
  MAX_FROM_KEEPER,
  MalformedFrame,
  TERMINAL_WINDOW_BYTES,
  uint64s,
} from '@shellfleet/keeper';
import { describe, expect, test } from 'vitest';
import { KeeperTerminals } from './shell-terminals.ts';

const ID = '01J0000000000000000000000T';
const PIECE = 16 << 10;

function output(offset: number, bytes = PIECE): Frame {
  const payload = Buffer.concat([uint64s(0), Buffer.alloc(bytes)]);
  const frame = encodeFrame({ type: FrameType.terminalOutput, fence: 1, id: entryIdToBytes(ID), offset, payload });
  return [...new FrameDecoder({ maxPayload: MAX_FROM_KEEPER }).push(frame)][0] as Frame;
}

function open(from = 0) {
  const terminals = new KeeperTerminals(() => {});
  let received = 0;
  const start = { id: ID, rows: 1, columns: 1, env: {}, from, resumeOnly: false };
  const handlers = {
    onOutput(_offset: number, bytes: Uint8Array) {
      received += bytes.length;
    },
    onEnd() {},
  };
  const terminal = terminals.open(start, handlers);
  return { terminals, terminal, received: () => received };
}

describe('terminals over a keeper', () => {
  test('accept at most one window of output that is not acknowledged', () => {
    const { terminals, terminal, received } = open();
    let at = 0;
    for (; at < 20 * TERMINAL_WINDOW_BYTES; at += PIECE) {
      terminals.output(output(at));
      terminal.ack(at + PIECE);
    }
    for (const end = at + TERMINAL_WINDOW_BYTES; at < end; at += PIECE) terminals.output(output(at));
    expect(() => terminals.output(output(at, 1))).toThrow(MalformedFrame);
    expect(received()).toBe(21 * TERMINAL_WINDOW_BYTES);
  });

  test('grant the whole window to a keeper that begins at an acknowledged offset', () => {
    const { terminals } = open(10);
    for (let at = 0; at < TERMINAL_WINDOW_BYTES; at += PIECE) terminals.output(output(1_000 + at));
    expect(() => terminals.output(output(1_000 + TERMINAL_WINDOW_BYTES, 1))).toThrow(MalformedFrame);
  });
});
