import { describe, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { ApprovalPolicy, approvalPolicySchema } from './approval.ts';
import type { ExecutionOptions, executionOptionsSchema } from './execution-options.ts';
import type { ExecutionPolicy, executionPolicySchema, PolicyName } from './execution-policy.ts';
import type { PrefixRule, prefixRuleSchema } from './prefix-rule.ts';
import type { RedactionRule, redactionRuleSchema } from './redaction.ts';
import type { RunOptionsInput, runOptionsSchema } from './run-options.ts';
import type { SandboxOptions, sandboxOptionsSchema } from './sandbox-options.ts';
import type { sessionSpecSchema } from './session.ts';
import type { limitsSchema, outputSchema } from './session-limits.ts';
import type { LimitOptions, OutputOptions, SessionSpec } from './session-spec.ts';

describe('the type of an option', () => {
  test('is what its schema accepts', () => {
    expectTypeOf<z.input<typeof sessionSpecSchema>>().toEqualTypeOf<SessionSpec>();
    expectTypeOf<z.input<typeof outputSchema>>().toEqualTypeOf<OutputOptions>();
    expectTypeOf<z.input<typeof limitsSchema>>().toEqualTypeOf<LimitOptions>();
    expectTypeOf<z.input<typeof sandboxOptionsSchema>>().toEqualTypeOf<SandboxOptions>();
    expectTypeOf<z.input<typeof runOptionsSchema>>().toEqualTypeOf<RunOptionsInput>();
    expectTypeOf<z.input<typeof executionOptionsSchema>>().toEqualTypeOf<ExecutionOptions>();
    expectTypeOf<z.input<typeof executionPolicySchema>>().toEqualTypeOf<PolicyName | ExecutionPolicy>();
    expectTypeOf<z.input<typeof approvalPolicySchema>>().toEqualTypeOf<ApprovalPolicy>();
    expectTypeOf<z.input<typeof prefixRuleSchema>>().toEqualTypeOf<PrefixRule>();
    expectTypeOf<z.input<typeof redactionRuleSchema>>().toEqualTypeOf<RedactionRule>();
  });
});
