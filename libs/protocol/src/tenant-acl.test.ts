import { describe, expect, test } from 'vitest';
import { tenantAclLine } from './tenant-acl.ts';

describe('the access list of a tenant', () => {
  test('names only keys and channels of the tenant, and what all tenants read or notify', () => {
    const words = tenantAclLine('ns', 'acme').split(' ');
    const patterns = words.filter((word) => /^\(?(?:%[RW])?[~&]/.test(word)).map((word) => word.replace(/^\(/, ''));
    const keyspace = `ns:${'?'.repeat(12)}`;
    expect(patterns.map((pattern) => pattern.replace(keyspace, '<ns>')).filter((one) => !one.includes('acme'))).toEqual(
      [
        '%R~ns:{x0}:fleet',
        '%R~<ns>:{x0}:retention',
        '%R~<ns>:{x0}:restoring',
        '%R~<ns>:{x0}:demand',
        '%R~<ns>:{x0}:hosts',
        '%R~<ns>:{x0}:host:*:alive',
        '%R~<ns>:{x0}:host:*:boot',
        '%R~<ns>:{x0}:host:*:left',
        '%R~<ns>:{x0}:host:*:cordon',
        '%R~<ns>:{x0}:host:*:tools',
        '%R~<ns>:{tools}:known',
        '%W~<ns>:{x0}:noted',
        '%W~<ns>:{x0}:batches-noted',
        '%W~<ns>:{tools}:noted',
        '%W~<ns>:{x0}:host:*:callers',
        '&<ns>:{x0}:wakeups',
        '&<ns>:{tools}:wakeups',
        '&<ns>:{x0}:host:*:wakeups',
      ],
    );
  });
});
