import {
  chmodSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { privateDirectory } from './compile-cache.ts';

let caches: string;
beforeEach(() => {
  caches = join(realpathSync(mkdtempSync(join(tmpdir(), 'shellfleet-cache-'))), 'caches');
});
afterEach(() => rmSync(join(caches, '..'), { recursive: true }));

const directoryIn = (path: string) => privateDirectory({ XDG_CACHE_HOME: path });

describe('the directory for compiled code', () => {
  test('is made for this user alone', () => {
    const directory = directoryIn(caches);
    expect(directory).toBe(join(caches, 'shellfleet/compile'));
    expect(lstatSync(directory as string).mode & 0o777).toBe(0o700);
    expect(directoryIn(caches)).toBe(directory);
  });

  test.each([0o720, 0o702, 0o777])('is not used if others can write to it or its parent (%o)', (mode) => {
    const directory = directoryIn(caches) as string;
    chmodSync(directory, mode);
    expect(directoryIn(caches)).toBeUndefined();
    chmodSync(directory, 0o700);
    chmodSync(caches, mode);
    expect(directoryIn(caches)).toBeUndefined();
  });

  test('is not used behind a link if others can write to the target', () => {
    const open = join(caches, '../open');
    mkdirSync(open);
    chmodSync(open, 0o777);
    symlinkSync(open, caches);
    expect(directoryIn(caches)).toBeUndefined();
  });

  test('is absent without an error where it cannot be made', () => {
    writeFileSync(caches, '');
    expect(directoryIn(caches)).toBeUndefined();
  });
});
