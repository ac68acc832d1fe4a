import { hostNameSchema, listPolicyNames, NETWORK_ACCESSES, POLICY_NAMES, SANDBOX_MODES } from '@shellfleet/protocol';
import { z } from 'zod';

/**
 * Inputs that no rule can check: stdin that is sent later, a terminal's input, what shells do besides their script, and
 * how the variables of a command that leaves its sandbox affect programs.
 */
const UNREADABLE_BY_RULES = ['stdin', 'terminals', 'shells', 'variables'] as const;
export type UnreadableByRules = (typeof UNREADABLE_BY_RULES)[number];

export const policiesSchema = z
  .array(z.enum(POLICY_NAMES, `knows ${listPolicyNames('and')}`), 'must be a list of policies')
  .min(1, 'must name a policy');
export const usersSchema = z.array(z.enum(['root', 'image'], "knows 'root' and 'image'"), 'must be a list');

/** `allow:`, what sessions may ask for on this host. Everything else is refused. The defaults are without risk. */
export const allowSchema = z.strictObject(
  {
    policies: policiesSchema.optional().describe('Execution policies, in place of SHELLFLEET_POLICIES'),
    users: usersSchema.optional().describe('More users than the usual one, in place of SHELLFLEET_USERS'),
    modes: z
      .array(z.enum(SANDBOX_MODES, `must be one of ${SANDBOX_MODES.join(', ')}`), 'must be a list of modes')
      .default(['read-only', 'workspace-write'])
      .describe('Sandbox modes that a session may ask for'),
    networks: z
      .array(z.enum(NETWORK_ACCESSES, `must be one of ${NETWORK_ACCESSES.join(', ')}`), 'must be a list of accesses')
      .default(['restricted'])
      .describe('Networks that a session may ask for'),
    hosts: z
      .array(hostNameSchema, 'must be a list of host names')
      .default([])
      .describe("The most that the network 'limited' may reach"),
    privateAddresses: z
      .array(
        z.union([z.cidrv4(), z.cidrv6()], 'must be a range of addresses such as 10.0.0.0/8'),
        'must be a list of address ranges',
      )
      .default([])
      .describe('Private addresses that the proxy may connect to for a name that resolves there'),
    runtimes: z
      .array(
        z.string('must be a string').regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be the name of a runtime'),
        'must be a list of runtimes',
      )
      .default([])
      .describe('Container runtimes that a session may ask for, as the engine names them'),
    redactFormats: z
      .boolean('must be true or false')
      .optional()
      .describe(
        'Whether sessions may have their output without the built-in redaction, in place of SHELLFLEET_ALLOW_UNREDACTED',
      ),
    unchecked: z
      .array(z.enum(UNREADABLE_BY_RULES, `must be one of ${UNREADABLE_BY_RULES.join(', ')}`), 'must be a list')
      .default([])
      .describe('What no rule can read, and is allowed where rules hold or a session asks persons all the same'),
  },
  'must have only these fields: policies, users, modes, networks, hosts, privateAddresses, runtimes, redactFormats, unchecked',
);
