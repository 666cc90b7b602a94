package dropin

const pdshAbout = "pdsh-" + pdshVersion + " (a mode of sshpace)\nrcmd modules: ssh,exec (default: ssh)\nmisc modules: genders\n"

const pdshHelp = `Usage: pdsh [-options] command ...
(a mode of sshpace: hosts are reached by ssh)
-S                return the largest exit code of the commands
-h                this text
-V                the version
-q                list options and hosts, and do nothing
-b                one ^C ends the run (it always does)
-d                how long connecting and commands took
-l user           login name
-t seconds        connect timeout (default 10)
-u seconds        end commands after this time
-f n              hosts at the same time (default 32)
-w host,host,...  hosts: lists, ^FILE, /REGEX/, -HOST to leave out, - for stdin
-x host,host,...  hosts to leave out
-R name           ssh or exec
-M name,...       taken and not used
-N                no labels before lines
-L                list modules
-g query,...      hosts by genders attributes
-X query,...      leave out hosts by genders attributes
-F file           genders file
-i                taken and not used
-a                all hosts of the genders file but those with pdsh_all_skip
-A                all hosts of the genders file
available rcmd modules: ssh,exec (default: ssh)
`

const pdshModules = `3 modules loaded:

Module: rcmd/exec
Descr:  arbitrary command rcmd connect method
Active: yes

Module: misc/genders
Descr:  target nodes using genders attributes
Active: yes

Module: rcmd/ssh
Descr:  ssh based rcmd connect method
Active: yes
`
