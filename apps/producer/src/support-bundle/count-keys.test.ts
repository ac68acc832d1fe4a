import { approvalKeys, batchKeys, fleetKeys, hostKeys, recordKey, sessionKeys } from '@shellfleet/protocol';
import { describe, expect, test } from 'vitest';
import { kindOf } from './count-keys.ts';

const session = sessionKeys('ns:0123456789ab', 'acme', 'build');

describe('the kind of a key', () => {
  test.each([
    [session.state, '{session}:state'],
    [recordKey(session, '01JZX0Y7R8QWERTY0123456789'), '{session}:record:*'],
    [approvalKeys('ns:0123456789ab', 'acme').questions, '{tenant}:questions'],
    [hostKeys('ns:0123456789ab', 'host-7').alive, '{fleet}:host:*:alive'],
    [fleetKeys('ns:0123456789ab').retention, '{fleet}:retention'],
    [batchKeys('ns:0123456789ab', 'acme', 'nightly').results, '{batch}:results'],
    ['something else', '(other)'],
  ])('of %s is %s', (key, kind) => {
    expect(kindOf(key)).toBe(kind);
  });
});
