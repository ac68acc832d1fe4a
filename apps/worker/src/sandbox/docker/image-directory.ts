import { checkCwd, type DockerPlan } from '@shellfleet/policy';
import { IMAGE_CWD, ShellfleetError } from '@shellfleet/protocol';
import type { FoundImage } from './find-image.ts';

/**
 * Returns the plan, with the image's directory if the session asks for that. Throws SANDBOX_UNAVAILABLE if the
 * directory is unsafe (CVE-2024-21626).
 */
export function withImageDirectory(plan: DockerPlan, { name, config }: FoundImage): DockerPlan {
  if (plan.cwd !== IMAGE_CWD) return plan;
  const cwd = config.WorkingDir || '/';
  if (cwd.startsWith('/') && checkCwd(cwd).length === 0) return { ...plan, cwd };
  const message = `the image ${name} starts in ${cwd}, which is no ordinary directory`;
  throw new ShellfleetError(
    'SANDBOX_UNAVAILABLE',
    `The host does not run what the session asks for. cwd: ${message}. Name a directory.`,
    { issues: [{ path: 'cwd', message }] },
  );
}
