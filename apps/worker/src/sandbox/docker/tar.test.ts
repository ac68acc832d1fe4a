import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { createTar } from './tar.ts';

describe('tar archives', () => {
  test('tar extracts the archive with its owners, modes and contents', async () => {
    const archive = await createTar([
      { path: 'workspace/', mode: 0o755, uid: 1000, gid: 1000 },
      { path: 'keeper', mode: 0o555, uid: 0, gid: 0, data: Buffer.from('x'.repeat(700)) },
      { path: 'far/', mode: 0o700, uid: 999_999_999, gid: 3_000_000 },
    ]);
    const listed = spawnSync('tar', ['--numeric-owner', '-tvf', '-'], { input: archive, encoding: 'utf8' });
    const lines = listed.stdout
      .trim()
      .split('\n')
      .map((line) => line.replace(/\s+/g, ' ').replace(/ \d{4}-\d\d-\d\d \d\d:\d\d/, ''));
    expect(lines).toEqual([
      'drwxr-xr-x 1000/1000 0 workspace/',
      '-r-xr-xr-x 0/0 700 keeper',
      'drwx------ 999999999/3000000 0 far/',
    ]);
    const content = spawnSync('tar', ['-xOf', '-', 'keeper'], { input: archive, encoding: 'utf8' });
    expect(content.stdout).toBe('x'.repeat(700));
  });
});
