import { type PolicyName, type ResolvedSessionSpec, ShellfleetError } from '@shellfleet/protocol';
import type { Sandboxes, SpareSandboxes } from './sandbox.ts';

/** Combines the policies that this host offers. A session runs under the policy of its spec, or is refused. */
export function createPolicySandboxes(offered: Partial<Record<PolicyName, Sandboxes>>): Sandboxes {
  const all = Object.values(offered);
  return {
    async create(session, spec, options) {
      const sandboxes = offered[spec.policy.type];
      if (sandboxes === undefined) throw notOffered(spec.policy.type, Object.keys(offered));
      return sandboxes.create(session, spec, options);
    },
    async list() {
      return (await Promise.all(all.map((sandboxes) => sandboxes.list()))).flat();
    },
    async find(session, sandboxId) {
      return offered.kubernetes?.find?.(session, sandboxId);
    },
    async check() {
      for (const sandboxes of all) await sandboxes.check();
    },
    async pull(image, signal) {
      await offered.docker?.pull(image, signal);
    },
    images: offered.docker?.images,
    spares: sparesOf(offered),
    async limits() {
      const limits = await Promise.all(all.map((sandboxes) => sandboxes.limits?.()));
      return Object.assign({}, ...limits);
    },
    missingRuntimes() {
      return all.flatMap((sandboxes) => sandboxes.missingRuntimes?.() ?? []);
    },
    async otherFleets() {
      return (await Promise.all(all.map((sandboxes) => sandboxes.otherFleets?.() ?? []))).flat();
    },
    setDiskQuotas(hasQuotas) {
      for (const sandboxes of all) sandboxes.setDiskQuotas?.(hasQuotas);
    },
    problem() {
      const problems = all.flatMap((sandboxes) => sandboxes.problem() ?? []);
      return problems.length === 0 ? undefined : problems.join(' ');
    },
    async sweep(...checks) {
      const removed = await Promise.all(all.map((sandboxes) => sandboxes.sweep(...checks)));
      return removed.reduce((sum, count) => sum + count, 0);
    },
    async listKept() {
      return (await Promise.all(all.map((sandboxes) => sandboxes.listKept?.() ?? []))).flat();
    },
    async removeKept(session) {
      await Promise.all(all.map((sandboxes) => sandboxes.removeKept?.(session)));
    },
    async close() {
      await Promise.all(all.map((sandboxes) => sandboxes.close()));
    },
  };
}

/** Returns the spare sandboxes of all policies that have some. */
function sparesOf(offered: Partial<Record<PolicyName, Sandboxes>>): SpareSandboxes | undefined {
  if (Object.values(offered).every(({ spares }) => spares === undefined)) return undefined;
  const find = ({ policy: { type } }: ResolvedSessionSpec): SpareSandboxes => {
    const spares = offered[type]?.spares;
    if (spares === undefined) throw new Error(`The policy ${type} has no sandboxes without a session.`);
    return spares;
  };
  return {
    keyOf: async (spec, image) => find(spec).keyOf(spec, image),
    create: async (spec) => find(spec).create(spec),
  };
}

function notOffered(asked: PolicyName, offered: string[]): ShellfleetError {
  const issues = [{ path: 'policy', message: `is not among what this host offers: ${offered.join(', ')}` }];
  return new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The host does not offer the policy '${asked}'; it offers ${offered.join(', ')}. Ask for one of these, or have the operator of a host list '${asked}' in SHELLFLEET_POLICIES.`,
    { issues },
  );
}
