"""Software for users that would have no owner, or come from nowhere."""

from tests.unit.site.bad.site import variables

AT = "group_vars/all.yml:1:"
SITES = (
    variables(
        "a tree of software that would be root's",
        "software_tree_directory: /software\n",
        f"{AT} /software would belong to root, and EasyBuild and Spack do not build as root "
        "[software-tree-without-owner]",
    ),
    variables(
        "a tree of software whose owner is root",
        "software_tree_owner: root\nsoftware_tree_directory: /software\n",
        f"{AT} software_tree_owner is 'root', not the name of an account that is not root's, or empty "
        "[invalid-value]",
    ),
    variables(
        "settings of a tree of software that is nowhere",
        "software_tree_owner: builder\n",
        f"{AT} warning: software_tree_owner is set for login1, which has no tree of software "
        "[software-tree-off]",
    ),
    variables(
        "versions that nothing is known of",
        "software_tree_spack_version: '1.0.2'\nsoftware_tree_easybuild_version: '9.0'\nconda_version: '2.3'\n"
        "software_tree_directory: /software\nsoftware_tree_owner: builder\n",
        f"{AT} software_tree_spack_archives has no spack of Spack 1.0.2, so that nothing says where it comes "
        "from [software-without-file]",
        "group_vars/all.yml:2: software_tree_easybuild_archives has no framework and no easyblocks and no "
        "easyconfigs of EasyBuild 9.0, so that nothing says where it comes from [software-without-file]",
        "group_vars/all.yml:3: conda_files has no program of micromamba 2.3, so that nothing says where it "
        "comes from [software-without-file]",
    ),
    variables(
        "a shared directory that is the system's, one twice, and a mode that is a number",
        "shared_directories_paths: [{path: /etc}, {path: /data}, {path: /data, mode: 2775}]\n",
        f"{AT} shared_directories_paths[0].path is '/etc', not an absolute path without spaces and .., and "
        "not the system's own [invalid-value]",
        f"{AT} shared_directories_paths[2].mode is 2775, not a mode in quotes, of three or four digits from "
        '0 to 7, as in "2775" [invalid-value]',
    ),
    variables(
        "a shared directory that is declared twice",
        "shared_directories_paths: [{path: /data}, {path: /data, mode: '2775'}]\n",
        f"{AT} shared_directories_paths has /data 2 times, and only the last one would count "
        "[declared-twice]",
    ),
)
