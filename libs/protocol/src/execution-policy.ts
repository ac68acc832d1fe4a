import { z } from 'zod';

// The execution policies that a session may ask for. To add one: an entry here, its defaults and refusals in libs/policy, and
// an opener of its sandboxes in the worker (open-policies.ts, where the compiler requires it).

/** Each policy with its options. The operator of a host decides which of them it grants. */
const POLICY_SCHEMAS = [
  // A separate container for each session.
  z.strictObject({ type: z.literal('docker'), readOnlyRootfs: z.boolean().default(false) }),
  // The host itself, without a container.
  z.strictObject({ type: z.literal('host') }),
] as const;

export type PolicyName = z.infer<(typeof POLICY_SCHEMAS)[number]>['type'];

export const POLICY_NAMES: readonly PolicyName[] = POLICY_SCHEMAS.map(({ shape }) => shape.type.value);

/** The policy of a session that names none, and of a host whose operator lists none. */
export const DEFAULT_POLICY: PolicyName = 'docker';

/** The names as a list within a sentence: `'docker' and 'host'`. */
export function listPolicyNames(conjunction: 'and' | 'or'): string {
  const quoted = POLICY_NAMES.map((name) => `'${name}'`);
  return `${quoted.slice(0, -1).join(', ')} ${conjunction} ${quoted.at(-1)}`;
}

/** Accepts `{ type, …options }`, or the name alone. */
export const executionPolicySchema = z.preprocess(
  // zod would wait for a promise that a preprocessor returns, which a synchronous parse cannot.
  (policy) => (typeof policy === 'string' ? { type: policy } : policy instanceof Promise ? {} : policy),
  z.discriminatedUnion('type', POLICY_SCHEMAS, `must be ${listPolicyNames('or')}, or { type: '${DEFAULT_POLICY}', … }`),
);
