import { z } from 'zod';
import { sandboxPathSchema } from './field-schemas.ts';

/** Target of a workspace that names none. */
const USUAL_TARGET = '/workspace';

/**
 * Directories of the system and the keeper. Nothing is mounted at, below or above one of them, because the session
 * would lose its programs, its devices or its keeper.
 */
const PROTECTED_TARGETS = [
  '/.shellfleet',
  '/.shellfleet-run',
  '/bin',
  '/boot',
  '/dev',
  '/etc',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/proc',
  '/run',
  '/sbin',
  '/sys',
  '/usr',
  '/var/run',
];

const targetSchema = sandboxPathSchema
  .transform((target) => target.replace(/(?<=.)\/+$/, ''))
  .superRefine((target, context) => {
    const refuse = (message: string) => context.addIssue({ code: 'custom', message });
    if (target.split('/').some((name, at) => name === '.' || name === '..' || (name === '' && at > 0)))
      refuse("must be a plain path, without '.', '..' and '//'");
    else if (target === '/tmp' || isSystemDirectory(target))
      refuse('is a directory of the system or of the keeper: nothing is mounted there');
    else if (target.startsWith(`${USUAL_TARGET}/`))
      refuse(`is below ${USUAL_TARGET}, which is the home of the session`);
  });

/**
 * Parses a workspace. The result is the path alone if the other options have their defaults, so equal mounts have one
 * form.
 */
export const workspaceSchema = z.union(
  [
    sandboxPathSchema,
    z
      .strictObject({
        path: sandboxPathSchema.meta({ description: 'Directory of the host.' }),
        target: targetSchema.optional().meta({ description: 'Place in the sandbox.', otherwise: USUAL_TARGET }),
        readOnly: z.boolean('must be true or false').default(false).meta({
          description: 'Whether the session may only read it.',
        }),
      })
      .transform(({ path, target, readOnly }) => withoutDefaults(path, target, readOnly)),
  ],
  { error: 'must be an absolute path, or { path, target, readOnly }' },
);
type ParsedWorkspace = z.output<typeof workspaceSchema>;

/** A directory of the host, and where it is mounted. */
export interface Workspace {
  path: string;
  target: string;
  readOnly: boolean;
}

export function workspaceOf({ workspace }: { workspace?: ParsedWorkspace | undefined }): Workspace | undefined {
  if (workspace === undefined) return undefined;
  const {
    path,
    target = USUAL_TARGET,
    readOnly = false,
  } = typeof workspace === 'string' ? { path: workspace } : workspace;
  return { path, target, readOnly };
}

/**
 * Tells whether a path is a directory of the system or the keeper, or is below or above one. Nothing may be mounted
 * there.
 */
export function isSystemDirectory(path: string): boolean {
  return path === '/' || PROTECTED_TARGETS.some((other) => areNested(other, path));
}

/** Returns a workspace in the form that `workspaceSchema` returns. */
export function toWorkspaceField({ path, target, readOnly }: Workspace): ParsedWorkspace {
  return withoutDefaults(path, target, readOnly);
}

function withoutDefaults(
  path: string,
  target: string | undefined,
  readOnly: boolean,
): string | { path: string; target?: string; readOnly?: true } {
  const isUsual = target === undefined || target === USUAL_TARGET;
  if (isUsual && !readOnly) return path;
  return { path, ...(isUsual ? {} : { target }), ...(readOnly ? { readOnly: true as const } : {}) };
}

function areNested(one: string, other: string): boolean {
  return one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);
}
