"""Fields of the custom resources that `anneal import` reads, as their newest CRDs name them: lists end in `[]`."""

from __future__ import annotations

FIELDS: dict[str, str] = {
    "Kustomization": """
        buildMetadata[] commonMetadata.annotations commonMetadata.labels components[] decryption.provider
        decryption.secretRef.name decryption.serviceAccountName deletionPolicy dependsOn[].name dependsOn[].namespace
        dependsOn[].readyExpr force healthCheckExprs[].apiVersion healthCheckExprs[].current healthCheckExprs[].failed
        healthCheckExprs[].inProgress healthCheckExprs[].kind healthChecks[].apiVersion healthChecks[].kind healthChecks[].name
        healthChecks[].namespace ignore[].paths[] ignore[].target.annotationSelector ignore[].target.group ignore[].target.kind
        ignore[].target.labelSelector ignore[].target.name ignore[].target.namespace ignore[].target.version
        ignoreMissingComponents images[].digest images[].name images[].newName images[].newTag interval
        kubeConfig.configMapRef.name kubeConfig.secretRef.key kubeConfig.secretRef.name namePrefix nameSuffix patches[].patch
        patches[].target.annotationSelector patches[].target.group patches[].target.kind patches[].target.labelSelector
        patches[].target.name patches[].target.namespace patches[].target.version path postBuild.substitute
        postBuild.substituteFrom[].kind postBuild.substituteFrom[].name postBuild.substituteFrom[].optional
        postBuild.substituteStrategy prune retryInterval serviceAccountName sourceRef.apiVersion sourceRef.kind sourceRef.name
        sourceRef.namespace suspend targetNamespace timeout wait
    """,
    "HelmRelease": """
        chart.metadata.annotations chart.metadata.labels chart.spec.chart chart.spec.ignoreMissingValuesFiles
        chart.spec.interval chart.spec.reconcileStrategy chart.spec.sourceRef.apiVersion chart.spec.sourceRef.kind
        chart.spec.sourceRef.name chart.spec.sourceRef.namespace chart.spec.valuesFiles[] chart.spec.verify.provider
        chart.spec.verify.secretRef chart.spec.version chartRef.apiVersion chartRef.kind chartRef.name chartRef.namespace
        commonMetadata.annotations commonMetadata.labels dependsOn[].name dependsOn[].namespace dependsOn[].readyExpr
        driftDetection.ignore[].paths[] driftDetection.ignore[].target.annotationSelector driftDetection.ignore[].target.group
        driftDetection.ignore[].target.kind driftDetection.ignore[].target.labelSelector driftDetection.ignore[].target.name
        driftDetection.ignore[].target.namespace driftDetection.ignore[].target.version driftDetection.mode
        healthCheckExprs[].apiVersion healthCheckExprs[].current healthCheckExprs[].failed healthCheckExprs[].inProgress
        healthCheckExprs[].kind install.crds install.createNamespace install.disableHooks install.disableOpenAPIValidation
        install.disableSchemaValidation install.disableTakeOwnership install.disableWait install.disableWaitForJobs
        install.remediation.ignoreTestFailures install.remediation.remediateLastFailure install.remediation.retries
        install.replace install.serverSideApply install.skipCRDs install.strategy.name install.strategy.retryInterval
        install.timeout interval kubeConfig.configMapRef.name kubeConfig.secretRef.key kubeConfig.secretRef.name maxHistory
        persistentClient postRenderStrategy postRenderers[].kustomize.images[].digest postRenderers[].kustomize.images[].name
        postRenderers[].kustomize.images[].newName postRenderers[].kustomize.images[].newTag
        postRenderers[].kustomize.patches[].patch postRenderers[].kustomize.patches[].target releaseName rollback.cleanupOnFail
        rollback.disableHooks rollback.disableWait rollback.disableWaitForJobs rollback.force rollback.recreate
        rollback.serverSideApply rollback.timeout serviceAccountName storageNamespace suspend targetNamespace test.enable
        test.filters[].exclude test.filters[].name test.ignoreFailures test.timeout timeout uninstall.deletionPropagation
        uninstall.disableHooks uninstall.disableWait uninstall.keepHistory uninstall.timeout upgrade.chartNameChangeStrategy
        upgrade.cleanupOnFail upgrade.crds upgrade.disableHooks upgrade.disableOpenAPIValidation upgrade.disableSchemaValidation
        upgrade.disableTakeOwnership upgrade.disableWait upgrade.disableWaitForJobs upgrade.force upgrade.preserveValues
        upgrade.remediation.ignoreTestFailures upgrade.remediation.remediateLastFailure upgrade.remediation.retries
        upgrade.remediation.strategy upgrade.serverSideApply upgrade.strategy.name upgrade.strategy.retryInterval
        upgrade.timeout values valuesFrom[].kind valuesFrom[].literal valuesFrom[].name valuesFrom[].optional
        valuesFrom[].targetPath valuesFrom[].valuesKey waitStrategy.name
    """,
    "GitRepository": """
        ignore include[].fromPath include[].repository.name include[].toPath interval provider proxySecretRef.name
        recurseSubmodules ref.branch ref.commit ref.name ref.semver ref.tag secretRef.name serviceAccountName sparseCheckout[]
        suspend timeout url verify.mode verify.secretRef.name
    """,
    "HelmRepository": """
        accessFrom.namespaceSelectors[].matchLabels certSecretRef.name insecure interval passCredentials provider secretRef.name
        suspend timeout type url
    """,
    "OCIRepository": """
        certSecretRef.name ignore insecure interval layerSelector.mediaType layerSelector.operation provider proxySecretRef.name
        ref.digest ref.semver ref.semverFilter ref.tag secretRef.name serviceAccountName suspend timeout url
        verify.matchOIDCIdentity[].issuer verify.matchOIDCIdentity[].subject verify.provider verify.secretRef.name
        verify.trustedRootSecretRef.name
    """,
    "HelmChart": """
        chart ignoreMissingValuesFiles interval reconcileStrategy sourceRef.apiVersion sourceRef.kind sourceRef.name suspend
        valuesFiles[] verify.matchOIDCIdentity[].issuer verify.matchOIDCIdentity[].subject verify.provider verify.secretRef.name
        version
    """,
    "Application": """
        destination.name destination.namespace destination.server ignoreDifferences[].group
        ignoreDifferences[].jqPathExpressions[] ignoreDifferences[].jsonPointers[] ignoreDifferences[].kind
        ignoreDifferences[].managedFieldsManagers[] ignoreDifferences[].name ignoreDifferences[].namespace info[].name
        info[].value project revisionHistoryLimit source.chart source.directory.disableExtensionFilter source.directory.exclude
        source.directory.include source.directory.jsonnet.extVars source.directory.jsonnet.libs source.directory.jsonnet.tlas
        source.directory.recurse source.helm.apiVersions[] source.helm.fileParameters[].name source.helm.fileParameters[].path
        source.helm.ignoreMissingValueFiles source.helm.kubeVersion source.helm.namespace source.helm.parameters[].forceString
        source.helm.parameters[].name source.helm.parameters[].value source.helm.passCredentials source.helm.releaseName
        source.helm.skipCrds source.helm.skipSchemaValidation source.helm.skipTests source.helm.valueFiles[] source.helm.values
        source.helm.valuesObject source.helm.version source.kustomize.apiVersions[] source.kustomize.commonAnnotations
        source.kustomize.commonAnnotationsEnvsubst source.kustomize.commonLabels source.kustomize.components[]
        source.kustomize.forceCommonAnnotations source.kustomize.forceCommonLabels source.kustomize.ignoreMissingComponents
        source.kustomize.images[] source.kustomize.kubeVersion source.kustomize.labelIncludeTemplates
        source.kustomize.labelWithoutSelector source.kustomize.namePrefix source.kustomize.nameSuffix source.kustomize.namespace
        source.kustomize.patches[].options source.kustomize.patches[].patch source.kustomize.patches[].path
        source.kustomize.patches[].target source.kustomize.replicas[].count source.kustomize.replicas[].name
        source.kustomize.version source.name source.path source.plugin.env[].name source.plugin.env[].value source.plugin.name
        source.plugin.parameters[].array source.plugin.parameters[].map source.plugin.parameters[].name
        source.plugin.parameters[].string source.ref source.repoURL source.tagPrefix source.targetRevision
        syncPolicy.automated.allowEmpty syncPolicy.automated.enabled syncPolicy.automated.prune syncPolicy.automated.selfHeal
        syncPolicy.managedNamespaceMetadata.annotations syncPolicy.managedNamespaceMetadata.labels
        syncPolicy.retry.backoff.duration syncPolicy.retry.backoff.factor syncPolicy.retry.backoff.maxDuration
        syncPolicy.retry.limit syncPolicy.retry.refresh syncPolicy.syncOptions[]
    """,
}
