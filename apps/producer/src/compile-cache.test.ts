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
import { afterEach, beforeEach, expect, test } from 'vitest';
import { privateFolder } from './compile-cache.ts';

let caches: string;
beforeEach(() => {
  caches = join(realpathSync(mkdtempSync(join(tmpdir(), 'shellfleet-cache-'))), 'caches');
});
afterEach(() => rmSync(join(caches, '..'), { recursive: true }));

const folderIn = (path: string) => privateFolder({ XDG_CACHE_HOME: path });

test('the folder for compiled code is made for this user alone', () => {
  const folder = folderIn(caches);
  expect(folder).toBe(join(caches, 'shellfleet/compile'));
  expect(lstatSync(folder as string).mode & 0o777).toBe(0o700);
  expect(folderIn(caches)).toBe(folder);
});

test.each([0o720, 0o702, 0o777])(
  'a folder that others can write (%o) is not used, and neither is one below it',
  (mode) => {
    const folder = folderIn(caches) as string;
    chmodSync(folder, mode);
    expect(folderIn(caches)).toBeUndefined();
    chmodSync(folder, 0o700);
    chmodSync(caches, mode);
    expect(folderIn(caches)).toBeUndefined();
  },
);

test('a link leads to a folder that is looked at in its own place', () => {
  const open = join(caches, '../open');
  mkdirSync(open);
  chmodSync(open, 0o777);
  symlinkSync(open, caches);
  expect(folderIn(caches)).toBeUndefined();
});

test('where no folder can be made there is none, and no error', () => {
  writeFileSync(caches, '');
  expect(folderIn(caches)).toBeUndefined();
});
