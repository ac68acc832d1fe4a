import { evaluate } from '@shellfleet/policy';
import {
  ASK_BY_DEFAULT,
  approvalPolicySchema,
  prefixRuleSchema,
  sandboxOptionsSchema,
  scriptSchema,
} from '@shellfleet/protocol';
import { z } from 'zod';
import { route } from './route.ts';

const bodySchema = z
  .strictObject({
    script: scriptSchema,
    execPolicy: z.array(prefixRuleSchema).optional().describe('Further rules.'),
    approval: approvalPolicySchema.optional(),
    askByDefault: z.enum(ASK_BY_DEFAULT).optional(),
    sandbox: sandboxOptionsSchema.optional(),
    escalate: z.boolean().optional().describe('Whether the command asks to leave its sandbox.'),
  })
  .meta({ id: 'RulesQuestion' });

const check = route({
  method: 'POST',
  path: '/rules:check',
  scope: 'read',
  operationId: 'checkRules',
  summary: 'Tells what rules say about a script, without running it',
  description: "The rules are those of the fleet's configuration and of the request. A host may have rules of its own.",
  body: bodySchema,
  replies: {
    200: {
      description: 'The decision.',
      schema: z
        .object({
          requirement: z.enum(['skip', 'needs-approval', 'forbidden']),
          reason: z.string().optional(),
          matchedRules: z.array(prefixRuleSchema),
          classification: z.enum(['safe', 'dangerous', 'unknown']),
          bypassSandbox: z.boolean(),
          amendment: prefixRuleSchema.optional().describe('Rule that would allow the script from now on.'),
        })
        .meta({ id: 'Evaluation' }),
    },
  },
  async handler({ body: { script, execPolicy = [], ...context }, fleet }) {
    const applied = await fleet.configuration();
    return evaluate(script, { ...context, execPolicy: [...(applied?.configuration.rules ?? []), ...execPolicy] });
  },
});

export const ruleRoutes = [check];
