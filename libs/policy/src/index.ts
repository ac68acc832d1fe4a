export { type ResolvedSandbox, resolveSandbox, SANDBOX_TABLE } from '@shellfleet/protocol';
export { compileOperatorRules, type OperatorRules, type RulesFile } from './documents/operator-rules.ts';
export { DocumentError, parseDocument } from './documents/parse-document.ts';
export { rulesSectionSchema } from './documents/rules-document.ts';
export { compileRules, type HostExecutable, patternText, type RulesOptions } from './exec/compile-rules.ts';
export type { CompiledRules } from './exec/compiled-rules.ts';
export { type Decision, type DecisionContext, decide, type Segment } from './exec/decide.ts';
export { coversAll, decideOperations, type OperationDecision, rulesNameFiles } from './exec/decide-operation.ts';
export { asksAfterDenial, rulingFor } from './exec/decision-table.ts';
export { type Evaluation, type EvaluationContext, evaluate } from './exec/evaluate.ts';
export { normalizePath, type OperationWords } from './exec/operation-words.ts';
export { type RequirementWithoutRule, requirementWithoutRule } from './exec/requirement-without-rule.ts';
export { type SandboxDenial, sandboxDenial } from './exec/sandbox-denial.ts';
export {
  type BubblewrapPlan,
  bubblewrapArguments,
  FILTER_DESCRIPTOR,
  type HostRoot,
  KERNEL_FILES,
  PROGRAM_DIRECTORIES,
  planBubblewrap,
} from './execution/bubblewrap.ts';
export { type CodexForm, type CodexPlan, codexArguments, planCodex, readCodexForm } from './execution/codex.ts';
export { checkCwd, WORKSPACE_PATH } from './execution/directories.ts';
export { type DockerAllowances, type DockerPlan, planDocker, USERS_SETTING } from './execution/docker.ts';
export { type HostAllowances, type HostPolicyPlan, planHost } from './execution/host.ts';
export { refusedByOffer } from './execution/host-offer.ts';
export { isWithinPatterns, matchesPatterns } from './execution/host-patterns.ts';
export { isListedImage } from './execution/image-list.ts';
export {
  type ClusterSettings,
  type KubernetesAllowances,
  type KubernetesPlan,
  planKubernetes,
  type Toleration,
} from './execution/kubernetes.ts';
export {
  type ClaimManifest,
  KEEPER_CONTAINER,
  KEEPER_PROTOCOL_ANNOTATION,
  type PodLabels,
  type PodManifest,
  type PodNames,
  podSelector,
  SHELL_CONTAINER,
  toClaim,
  toPod,
  toPodLabels,
} from './execution/kubernetes-pod.ts';
export { proxyVariables } from './execution/proxy-variables.ts';
export { withSetting } from './execution/refusal.ts';
export {
  checkSandbox,
  DEFAULT_SANDBOX_ALLOWANCES,
  type SandboxAllowances,
} from './execution/sandbox-modes.ts';
export { type SeccompProfile, type SeccompRule, sessionSeccompProfile } from './execution/seccomp.ts';
export { compileSeccomp } from './execution/seccomp-filter.ts';
export {
  IMAGE_OWNER_FILE,
  isMadeHere,
  ownSessionImages,
  SESSION_IMAGES,
  type SessionImages,
  toDefaultImage,
  toWholeName,
} from './execution/session-images.ts';
export { checkEscalation, isPlainShell, type WiderSettings, widenSandbox } from './execution/wider-sandbox.ts';
export type { HostBounds } from './limits.ts';
export {
  compileRedaction,
  createRedactor,
  type RedactedText,
  type Redaction,
  type RedactionOptions,
  validateRedaction,
} from './redaction/compile.ts';
export { REDACTION_CONTEXT_BYTES, type RedactionBlock, type Redactor } from './redaction/redactor.ts';
export { type RedactionWarning, unmaskedSecrets } from './redaction/secrets/known-secrets.ts';
export { TOKEN_TYPES } from './redaction/tokens/tokens.ts';
