import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isOffered, placementClass, toPlacement } from '@shellfleet/placement';
import { type HostOffer, hostOfferSchema, type SessionSpec, sessionSpecSchema } from '@shellfleet/protocol';
import { afterAll, describe, expect, test } from 'vitest';
import { CanServe } from './can-serve.ts';

const directory = realpathSync(mkdtempSync(join(tmpdir(), 'sf-serve-')));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const canServe = (spec: SessionSpec, offer: Partial<HostOffer> = {}) =>
  new CanServe({} as never, { ...hostOfferSchema.parse({}), ...offer }, 'slim').spec(sessionSpecSchema.parse(spec));

/** A host that refuses whatever a host may refuse, and has no more than one session needs. */
const LEAST: Partial<HostOffer> = {
  ...{ images: [], ownUids: true, controlGroups: false, diskQuota: false },
  ...{ memoryBytes: 512 * 2 ** 20, cpus: 1, pids: 256 },
};
const ASKED: Partial<Record<keyof SessionSpec, SessionSpec[keyof SessionSpec][]>> = {
  policy: ['docker', 'host', 'bubblewrap', 'codex', { type: 'docker', runtime: 'runc' }],
  image: [undefined, 'debian:12'],
  user: [undefined, '7:7', 'root'],
  workspace: [undefined, '/srv/a'],
  redactFormats: [undefined, false],
  keepOnFailure: [undefined, true],
  sandbox: [
    undefined,
    { mode: 'read-only' },
    { mode: 'danger-full-access' },
    { network: 'full' },
    { selection: 'forbid' },
  ],
  limits: [
    undefined,
    { memoryBytes: 2 ** 26 },
    { memoryBytes: 2 ** 40 },
    { cpus: 0.5 },
    { pids: 4_096 },
    { diskBytes: 1 },
  ],
};

const ABILITIES = {
  ...{ policies: ['docker', 'host', 'bubblewrap', 'codex'], sealKeys: ['key'], schema: 2, labels: {} },
  allow: { ...hostOfferSchema.parse({}), ...LEAST },
};

describe('the sessions that a host can serve', () => {
  test('include every session that is not particular, of a class that it offers', async () => {
    const specs = Object.entries(ASKED).reduce<SessionSpec[]>(
      (all, [field, values]) => all.flatMap((spec) => values.map((value) => ({ ...spec, [field]: value }))),
      [{}],
    );
    let [usual, particular, unoffered] = [0, 0, 0];
    for (const spec of specs) {
      const parsed = sessionSpecSchema.safeParse(spec);
      if (!parsed.success) continue;
      const placement = toPlacement(parsed.data, '1.key');
      if (placement.particular === true) {
        particular++;
        continue;
      }
      const offered = isOffered(placementClass(placement), ABILITIES);
      if (offered) usual++;
      else unoffered++;
      expect(await canServe(spec, LEAST), JSON.stringify(spec)).toBe(offered);
    }
    expect(usual).toBeGreaterThan(5);
    expect(unoffered).toBeGreaterThan(5);
    expect(particular).toBeGreaterThan(500);
  });

  test('include a workspace behind a link by the directory to which the link leads', async () => {
    const [listed, other] = [join(directory, 'listed'), join(directory, 'other')];
    for (const path of [listed, other]) mkdirSync(path);
    symlinkSync(listed, join(other, 'link'));
    const offer = { workspaces: [listed] };
    expect(await canServe({ workspace: join(other, 'link', 'new') }, offer)).toBe(true);
    expect(await canServe({ workspace: other }, offer)).toBe(false);
  });
});
