import { readFile } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { workerAclRules } from './worker-acl.ts';

describe('the access list of a worker', () => {
  test('is that of docs/operations.md', async () => {
    const text = await readFile(new URL('../../../docs/operations.md', import.meta.url), 'utf8');
    expect(text).toContain(`ACL SETUSER worker on >PASSWORD ${workerAclRules('shellfleet').join(' ')}\n`);
  });
});
