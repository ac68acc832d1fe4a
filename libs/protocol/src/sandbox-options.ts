import { z } from 'zod';

export const SANDBOX_MODES = ['read-only', 'workspace-write', 'danger-full-access', 'external'] as const;
export type SandboxMode = (typeof SANDBOX_MODES)[number];

export const NETWORK_ACCESSES = ['restricted', 'limited', 'full'] as const;
export type NetworkAccess = (typeof NETWORK_ACCESSES)[number];

/** What the sandbox of a session allows. A host refuses what it cannot enforce (SANDBOX_UNAVAILABLE). */
export interface SandboxOptions {
  /**
   * Where a session may write: only temporary files; also its workspace; wherever its user may; or `external`, whatever
   * a sandbox around the host allows.
   * @default the mode of its policy, docs/sandboxes.md
   */
  mode?: SandboxMode | undefined;
  /**
   * Which network a session reaches: none, the `allowedHosts`, or all that its host reaches.
   * @default the access of its policy: 'restricted', where the policy can enforce it
   */
  network?: NetworkAccess | undefined;
  /**
   * Host names for the network `limited`: `example.org` or `*.example.org`, with `:port` if not 80 or 443.
   * @default none
   * @limit 256 names; only with `network: 'limited'`
   */
  allowedHosts?: string[] | undefined;
  /**
   * Whether a sandbox is used: as the mode asks for, always, or never.
   * @default 'auto'
   */
  selection?: 'auto' | 'require' | 'forbid' | undefined;
  /**
   * Whether a command that the sandbox denied something may run again outside it, if `approval` asks and a person
   * allows it.
   * @default true
   */
  escalateOnFailure?: boolean | undefined;
}

export const hostNameSchema = z
  .string('must be a string')
  .max(260, { error: 'must be at most 260 characters', abort: true })
  .regex(
    /^(?:\*\.)?(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?::[1-9][0-9]{0,4})?$/i,
    'is not a host name (example.org, *.example.org, example.org:8443)',
  )
  .refine((name) => !/^[0-9.]+(?::[0-9]+)?$/.test(name), 'must be a name, not an address')
  .transform((name) => name.toLowerCase());

export const sandboxOptionsSchema = z
  .strictObject(
    {
      mode: z
        .enum(SANDBOX_MODES, `must be one of ${SANDBOX_MODES.join(', ')}`)
        .optional()
        .meta({
          description:
            'Where a session may write: only temporary files; also its workspace; wherever its user may; or ' +
            '`external`, whatever a sandbox around the host allows.',
          otherwise: 'the mode of its policy, docs/sandboxes.md',
          flag: 'what it may write',
        }),
      network: z
        .enum(NETWORK_ACCESSES, `must be one of ${NETWORK_ACCESSES.join(', ')}`)
        .optional()
        .meta({
          description: 'Which network a session reaches: none, the `allowedHosts`, or all that its host reaches.',
          otherwise: "the access of its policy: 'restricted', where the policy can enforce it",
          flag: 'what it may reach',
        }),
      allowedHosts: z
        .array(hostNameSchema, 'must be a list of host names')
        .max(256, 'must hold at most 256 names')
        .optional()
        .meta({
          description:
            'Host names for the network `limited`: `example.org` or `*.example.org`, with `:port` if not 80 or ' +
            '443.',
          otherwise: 'none',
          limit: "256 names; only with `network: 'limited'`",
          flag: 'a host that the network limited reaches',
        }),
      selection: z
        .enum(['auto', 'require', 'forbid'], "must be 'auto', 'require' or 'forbid'")
        .default('auto')
        .meta({ description: 'Whether a sandbox is used: as the mode asks for, always, or never.' }),
      escalateOnFailure: z
        .boolean('must be true or false')
        .default(true)
        .meta({
          description:
            'Whether a command that the sandbox denied something may run again outside it, if `approval` asks ' +
            'and a person allows it.',
        }),
    },
    'must be an object of options: mode, network, allowedHosts, selection, escalateOnFailure',
  )
  .check(({ value: { network, allowedHosts }, issues }) => {
    if (allowedHosts !== undefined && network !== 'limited')
      issues.push({
        code: 'custom',
        path: ['allowedHosts'],
        message: "has a meaning only with network: 'limited'",
        input: allowedHosts,
      });
  })
  .meta({
    id: 'SandboxOptions',
    description: 'What the sandbox of a session allows. A host refuses what it cannot enforce (SANDBOX_UNAVAILABLE).',
  });
export type ParsedSandboxOptions = z.output<typeof sandboxOptionsSchema>;
