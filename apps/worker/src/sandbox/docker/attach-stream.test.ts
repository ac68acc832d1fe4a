import { Duplex } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { AttachStream } from './attach-stream.ts';

class FakeSocket extends Duplex {
  readonly written: Buffer[] = [];
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.written.push(chunk);
    done();
  }
}

function frame(stream: number, text: string): Buffer {
  const header = Buffer.alloc(8);
  header[0] = stream;
  header.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([header, Buffer.from(text)]);
}

describe('the attached streams of a container', () => {
  test('returns stdout without stderr for every split point', async () => {
    const input = Buffer.concat([frame(1, 'one'), frame(2, 'noise'), frame(1, ''), frame(1, 'two')]);
    for (let at = 0; at <= input.length; at += 1) {
      const socket = new FakeSocket();
      const stream = new AttachStream(socket);
      socket.push(input.subarray(0, at));
      socket.push(input.subarray(at));
      socket.push(null);
      const parts: Buffer[] = [];
      for await (const part of stream) parts.push(part);
      expect(Buffer.concat(parts).toString()).toBe('onetwo');
    }
  });

  test('forwards writes, and stops reading while its reader is slow', async () => {
    const socket = new FakeSocket();
    const stream = new AttachStream(socket);
    await new Promise((done) => stream.write('hello', done));
    expect(Buffer.concat(socket.written).toString()).toBe('hello');
    socket.push(frame(1, 'x'.repeat(200_000)));
    await expect.poll(() => socket.isPaused()).toBe(true);
    stream.destroy();
    expect(socket.destroyed).toBe(true);
  });
});
