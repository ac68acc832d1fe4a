import { describe, expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type { Approval, ApprovalPolicy, approvalPolicySchema } from './approval.ts';
import type { approvalSchema } from './approval-schema.ts';
import type { ExecutionOptions, executionOptionsSchema } from './execution-options.ts';
import type { ExecutionPolicy, executionPolicySchema, PolicyName } from './execution-policy.ts';
import type { HostInfo } from './host.ts';
import type { hostInfoSchema } from './host-info-schema.ts';
import type { PrefixRule, prefixRuleSchema } from './prefix-rule.ts';
import type { RedactionRule, redactionRuleSchema } from './redaction.ts';
import type { Result, ResultFields } from './result.ts';
import type { resultFieldsSchema, resultSchema } from './result-schema.ts';
import type { RunOptionsInput, runOptionsSchema } from './run-options.ts';
import type { SandboxOptions, sandboxOptionsSchema } from './sandbox-options.ts';
import type { sessionSpecSchema } from './session.ts';
import type { SessionInfo } from './session-info.ts';
import type { sessionInfoSchema } from './session-info-schema.ts';
import type { limitsSchema, outputSchema } from './session-limits.ts';
import type { LimitOptions, OutputOptions, SessionSpec } from './session-spec.ts';
import type { ToolInfo, ToolResult, toolInfoSchema, toolResultSchema } from './tool.ts';

describe('the type of a reply', () => {
  test('is what its schema returns', () => {
    expectTypeOf<z.output<typeof sessionInfoSchema>>().toEqualTypeOf<SessionInfo>();
    expectTypeOf<z.output<typeof hostInfoSchema>>().toEqualTypeOf<HostInfo>();
    expectTypeOf<z.output<typeof approvalSchema>>().toEqualTypeOf<Approval>();
    expectTypeOf<z.output<typeof toolInfoSchema>>().toEqualTypeOf<ToolInfo>();
    expectTypeOf<z.output<typeof resultFieldsSchema>>().toEqualTypeOf<ResultFields>();
    // A Result has the fields of other outcomes as absent.
    expectTypeOf<z.output<typeof resultSchema>>().toExtend<Result>();
    expectTypeOf<Result>().toExtend<z.output<typeof resultSchema>>();
    expectTypeOf<z.output<typeof toolResultSchema>>().toExtend<ToolResult>();
    expectTypeOf<ToolResult>().toExtend<z.output<typeof toolResultSchema>>();
  });
});

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
