// Plays the keeper's side of published test vectors, by the keeper's C.
import { execFile } from 'node:child_process';
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

interface Vector {
  source: string;
  prologue: string;
  psk: string;
  initiatorStatic: string;
  responderEphemeral: string;
  handshakeHash?: string;
  messages: { payload: string; ciphertext: string }[];
}

const run = promisify(execFile);
const library = join(import.meta.dirname, '..');
const { vectors } = JSON.parse(await readFile(join(library, 'fuzz/noise-vectors.json'), 'utf8')) as {
  vectors: Vector[];
};
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sf-noise-'));
  const sources = [join(library, 'fuzz/noise-vector.c'), join(library, 'src/noise.c')];
  const flags = ['-std=gnu11', '-Wall', '-Wextra', '-Werror', '-fsanitize=address,undefined'];
  await run('cc', [...flags, '-o', join(directory, 'noise-vector'), ...sources, '-lsodium']);
});
afterAll(() => rm(directory, { recursive: true, force: true }));

/** Returns what the responder makes of the vector: the hash of the handshake, payloads read and messages written. */
async function respond({ prologue, psk, initiatorStatic, responderEphemeral, messages }: Vector): Promise<string[]> {
  const texts = messages.map(({ payload, ciphertext }, index) => (index % 2 === 0 ? ciphertext : payload));
  const args = [prologue, psk, publicKeyOf(initiatorStatic), responderEphemeral, ...texts];
  const { stdout } = await run(join(directory, 'noise-vector'), args);
  return stdout.split('\n').slice(0, -1);
}

function publicKeyOf(secret: string): string {
  const key = Buffer.from(`302e020100300506032b656e04220420${secret}`, 'hex');
  const jwk = createPublicKey(createPrivateKey({ key, format: 'der', type: 'pkcs8' })).export({ format: 'jwk' });
  return Buffer.from(jwk.x ?? '', 'base64url').toString('hex');
}

/** Returns the text with its last bit inverted. */
const damaged = (hex: string) => `${hex.slice(0, -1)}${(Number.parseInt(hex.slice(-1), 16) ^ 1).toString(16)}`;

describe('the handshake of the keeper', () => {
  test.each(vectors.map((vector, index) => [index, vector.source.split(',')[0], vector] as const))(
    'gives the bytes of the published vector %i (%s)',
    async (_index, _source, vector) => {
      const [hash, ...texts] = await respond(vector);
      if (vector.handshakeHash) expect(hash).toBe(vector.handshakeHash);
      expect(texts).toEqual(
        vector.messages.map(({ payload, ciphertext }, index) => (index % 2 === 0 ? payload : ciphertext)),
      );
    },
  );

  const [vector] = vectors as [Vector];
  const change = (index: number, ciphertext: string): Vector => ({
    ...vector,
    messages: vector.messages.map((message, at) => (at === index ? { ...message, ciphertext } : message)),
  });
  test.each([
    ['another preshared key', 3, { ...vector, psk: damaged(vector.psk) }],
    ['another prologue', 3, { ...vector, prologue: damaged(vector.prologue) }],
    ['another static key', 3, { ...vector, initiatorStatic: '01'.repeat(32) }],
    ['a first message that was changed', 3, change(0, damaged(vector.messages[0]?.ciphertext ?? ''))],
    ['a first message that is too short', 3, change(0, '00'.repeat(47))],
    ['a later message that was changed', 5, change(2, damaged(vector.messages[2]?.ciphertext ?? ''))],
    ['a later message that comes again', 5, change(4, vector.messages[2]?.ciphertext ?? '')],
    ['a later message without a tag', 5, change(2, '00'.repeat(15))],
  ])('refuses %s', async (_, exitCode, wrong) => {
    await expect(respond(wrong)).rejects.toMatchObject({ code: exitCode });
  });
});
