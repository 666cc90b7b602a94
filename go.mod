module sshpace

go 1.26
