import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A secret whose text differs in every encoding. */
export const PLANTED = 'Zq8/hunter2+"&x=7\\Wk~p9vT%';

/** Returns the value in every encoding in which a command may print it. None of them may be stored anywhere. */
export function everyFormOf(secret: string): Record<string, Buffer> {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString('hex');
  const json = JSON.stringify(secret).slice(1, -1);
  const ascii = json.replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const alignments = [0, 1, 2].map((shift) => {
    const padded = Buffer.concat([Buffer.alloc(shift), bytes]).toString('base64');
    // The part that does not depend on the neighbouring characters.
    return padded.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6));
  });
  const forms = { raw: secret, hex, HEX: hex.toUpperCase(), url: encodeURIComponent(secret), json, ascii };
  return Object.fromEntries([
    ...Object.entries(forms).map(([name, text]) => [name, Buffer.from(text)]),
    ...alignments.flatMap((text, shift) => [
      [`base64 at ${shift}`, Buffer.from(text)],
      [`base64url at ${shift}`, Buffer.from(text.replaceAll('+', '-').replaceAll('/', '_'))],
    ]),
  ]);
}

/** Returns the names of the encodings in which the bytes contain the secret. */
export function findForms(secret: string, bytes: Buffer): string[] {
  return Object.entries(everyFormOf(secret)).flatMap(([name, form]) => (bytes.includes(form) ? [name] : []));
}

/** Returns the paths and contents of all files below a directory as one buffer. */
export async function everythingBelow(directory: string): Promise<Buffer> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const parts = await Promise.all(
    entries.map(async (entry) => {
      const path = join(entry.parentPath, entry.name);
      return [
        Buffer.from(`${path}\n`),
        entry.isFile() ? await readFile(path).catch(() => Buffer.alloc(0)) : Buffer.alloc(0),
      ];
    }),
  );
  return Buffer.concat(parts.flat());
}
