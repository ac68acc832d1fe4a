import { type ApprovalGrant, approvalKeys } from '@shellfleet/protocol';
import { createSealer, createSealKey, sealPlace } from '@shellfleet/sealing';
import { describe, expect, test } from 'vitest';
import { OpenedGrants } from './opened-grants.ts';

const keys = approvalKeys('n', 't');
const sealer = createSealer([createSealKey()]);
const grant: ApprovalGrant = {
  question: { sessionId: 's', commandId: 's.e', script: 'make', reason: 'it asks', place: 'policy docker', env: [] },
  ...{ scope: 'command', answeredBy: 'ada', askedAt: 1, count: 1 },
};
const sealedFor = (question: string) =>
  sealer.seal(JSON.stringify(grant), sealPlace('approval-grant', keys, { question }));

/** Creates grants whose sealer records what it opens. */
function countOpenings() {
  const opened: string[] = [];
  const counting = {
    ...sealer,
    open: (text: string, place: Parameters<typeof sealer.open>[1]) => {
      opened.push(place.entry);
      return sealer.open(text, place);
    },
  };
  return { opened, grants: new OpenedGrants(counting) };
}

describe('opened grants', () => {
  test('open a grant once, for its own question and tenant only', () => {
    const { opened, grants } = countOpenings();
    const sealed = sealedFor('a');
    expect([grants.open('a', sealed, keys), grants.open('a', sealed, keys)]).toEqual([grant, grant]);
    expect(opened).toEqual(['a']);
    expect(grants.open('b', sealed, keys)).toBeUndefined();
    expect(grants.open('a', sealed, approvalKeys('n', 'other'))).toBeUndefined();
  });

  test('keep the thousand that were opened last', () => {
    const { opened, grants } = countOpenings();
    const all = Array.from({ length: 1_001 }, (_, index) => ({ id: `q${index}`, sealed: sealedFor(`q${index}`) }));
    for (const { id, sealed } of all) grants.open(id, sealed, keys);
    const [first, second] = all;
    for (const { id, sealed } of [second!, first!]) grants.open(id, sealed, keys);
    expect(opened.slice(1_001)).toEqual(['q0']);
  });
});
